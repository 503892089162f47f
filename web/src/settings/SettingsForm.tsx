import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { approvalModes } from '../agents/approvalModes'
import { Button } from '../ui/Button'
import { ErrorState } from '../ui/ErrorState'
import { Field, Select, TextInput } from '../ui/Field'
import { Box, Facts } from '../ui/Page'
import { toast } from '../ui/toast'
import { ask } from '../wire/api'
import type { Settings } from '../wire/native.generated'

interface Draft {
  model: string
  approval: string
  turns: string
  compact: string // percent
  depth: string
}

function draftOf(settings: Settings): Draft {
  return {
    model: settings.model ?? '',
    approval: settings.approval,
    turns: String(settings.turns),
    compact: String(Math.round(settings.compact_at * 100)),
    depth: String(settings.max_delegation_depth),
  }
}

// changes returns the changed settings of a draft. An empty model restores the default.
export function changes(was: Settings, draft: Draft): Record<string, unknown> {
  const before = draftOf(was)
  const changed: Record<string, unknown> = {}
  if (draft.model.trim() !== before.model) changed.model = draft.model.trim() === '' ? null : draft.model.trim()
  if (draft.approval !== before.approval) changed.approval = draft.approval
  if (draft.turns !== before.turns) changed.turns = Number(draft.turns)
  if (draft.compact !== before.compact) changed.compact_at = Number(draft.compact) / 100
  if (draft.depth !== before.depth) changed.max_delegation_depth = Number(draft.depth)
  return changed
}

export function SettingsForm({ settings, may }: { settings: Settings; may: boolean }) {
  const queries = useQueryClient()
  const [draft, setDraft] = useState(() => draftOf(settings))
  const set = (some: Partial<Draft>) => setDraft({ ...draft, ...some })
  const changed = changes(settings, draft)
  const dirty = Object.keys(changed).length > 0
  const save = useMutation({
    mutationFn: () => ask<Settings>('PATCH', '/api/v1/settings', { body: changed }),
    onSuccess: (now) => {
      queries.setQueryData(['settings'], now)
      toast('Saved.')
    },
  })
  if (!may)
    return (
      <Box className="p-4">
        <Facts
          facts={[
            ['Model', settings.model ?? 'default of the server'],
            ['Approval', settings.approval],
            ['Turns per run', settings.turns],
            ['Compact the context at', `${Math.round(settings.compact_at * 100)} %`],
            ['Levels of sub-agents', settings.max_delegation_depth],
          ]}
        />
      </Box>
    )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (dirty) save.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Box className="flex flex-col gap-4 p-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Model" hint="Leave empty to use the default of the server.">
            {(control) => (
              <TextInput
                {...control}
                className="font-mono"
                spellCheck={false}
                value={draft.model}
                onChange={(event) => set({ model: event.target.value })}
              />
            )}
          </Field>
          <Field label="Approval" hint="What agents may do without approval.">
            {(control) => (
              <Select
                {...control}
                className="w-full"
                value={draft.approval}
                onChange={(event) => set({ approval: event.target.value })}
              >
                {Object.entries(approvalModes).map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Field label="Turns per run" hint="1 to 1000.">
            {(control) => (
              <TextInput
                {...control}
                type="number"
                min={1}
                max={1000}
                required
                value={draft.turns}
                onChange={(event) => set({ turns: event.target.value })}
              />
            )}
          </Field>
          <Field label="Compact the context at (%)" hint="Percent of the context window of the model, 10 to 95.">
            {(control) => (
              <TextInput
                {...control}
                type="number"
                min={10}
                max={95}
                required
                value={draft.compact}
                onChange={(event) => set({ compact: event.target.value })}
              />
            )}
          </Field>
          <Field label="Levels of sub-agents" hint="0 means that agents have no sub-agents.">
            {(control) => (
              <TextInput
                {...control}
                type="number"
                min={0}
                max={5}
                required
                value={draft.depth}
                onChange={(event) => set({ depth: event.target.value })}
              />
            )}
          </Field>
        </div>
        {save.error !== null && <ErrorState what="The settings were not saved." error={save.error} />}
        <div className="flex gap-2">
          <Button type="submit" kind="primary" disabled={!dirty} busy={save.isPending}>
            Save
          </Button>
          {dirty && (
            <Button kind="quiet" onClick={() => setDraft(draftOf(settings))}>
              Undo changes
            </Button>
          )}
        </div>
      </Box>
    </form>
  )
}
