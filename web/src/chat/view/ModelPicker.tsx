import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ask } from '../../wire/api'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { ErrorState, why } from '../../ui/ErrorState'
import { Field, TextInput } from '../../ui/Field'
import { CheckIcon, ChevronDownIcon } from '../../ui/icons'
import { Menu, MenuItem, MenuLine } from '../../ui/Menu'
import { toast } from '../../ui/toast'
import { useMe } from '../../wire/me'
import type { Agent } from '../../wire/native.generated'
import { useSettings } from './queries'

// ModelPicker says which model answers. An agent whose definition names one uses
// that; for all others one model is chosen, for everybody.
export function ModelPicker({ agents, agent }: { agents: Agent[]; agent?: string }) {
  const { me, may } = useMe()
  const mayChange = may('tenant:write')
  const settings = useSettings(mayChange)
  const queries = useQueryClient()
  const [asking, setAsking] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)
  const chosen = settings.data?.model
  const used = agents.find((each) => each.id === agent)?.model
  const own = used === (chosen || me?.model) ? undefined : used // else it cannot be told from the others'
  const model = own || chosen || me?.model
  if (model === undefined) return null

  const set = async (next: string | null) => {
    setError(null)
    try {
      await ask('PATCH', '/api/v1/settings', { body: { model: next } })
      setAsking(null)
      toast(next === null ? 'The default model is used from the next run on.' : `${next} is used from the next run on.`)
    } catch (problem) {
      if (asking === null) toast(`The model was not changed. ${why(problem)}`, 'failed')
      setError(problem)
    }
    await Promise.all(['settings', 'agents', 'me'].map((key) => queries.invalidateQueries({ queryKey: [key] })))
  }
  if (!mayChange) return <span className="truncate text-xs text-ink-soft">{model}</span>

  const known = [
    ...new Set(
      [chosen, ...agents.map((each) => each.model)].filter(
        (name): name is string => Boolean(name) && name !== me?.model,
      ),
    ),
  ]
  return (
    <>
      <Menu
        items={
          <>
            {own ? (
              <p className="max-w-72 px-2 py-1.5 text-xs text-ink-soft">
                The agent {agent} always uses {own}. The choice below is for agents without a model of their own.
              </p>
            ) : null}
            <MenuItem onSelect={() => void set(null)}>
              <CheckIcon className={chosen ? 'invisible' : ''} /> Default model{me?.model ? ` (${me.model})` : ''}
            </MenuItem>
            {known.map((name) => (
              <MenuItem key={name} onSelect={() => void set(name)}>
                <CheckIcon className={name === chosen ? '' : 'invisible'} /> {name}
              </MenuItem>
            ))}
            <MenuLine />
            <MenuItem onSelect={() => setAsking('')}>Another model…</MenuItem>
          </>
        }
      >
        <Button small kind="quiet" aria-label={`Model: ${model}. Choose another`}>
          <span className="max-w-40 truncate">{model}</span> <ChevronDownIcon />
        </Button>
      </Menu>
      <Dialog
        open={asking !== null}
        onOpenChange={(open) => !open && setAsking(null)}
        title="Another model"
        description="Agents without a model of their own use it from the next run on. The server needs its API key."
        actions={
          <>
            <Button onClick={() => setAsking(null)}>Cancel</Button>
            <Button
              kind="primary"
              disabled={(asking ?? '').trim() === ''}
              onClick={() => void set((asking ?? '').trim())}
            >
              Use this model
            </Button>
          </>
        }
      >
        <div className="mt-3 flex flex-col gap-3">
          <Field label="Name of the model" hint="claude-sonnet-4-5, gpt-4.1, gemini-2.5-pro, llama3.2 …">
            {(control) => (
              <TextInput {...control} value={asking ?? ''} onChange={(event) => setAsking(event.target.value)} />
            )}
          </Field>
          {error !== null && <ErrorState what="The model was not changed." error={error} />}
        </div>
      </Dialog>
    </>
  )
}
