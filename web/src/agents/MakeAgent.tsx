import { useNavigate } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { Button } from '../ui/Button'
import { Dialog } from '../ui/Dialog'
import { ErrorState } from '../ui/ErrorState'
import { Field, Select, TextArea, TextInput } from '../ui/Field'
import type { Definition } from '../wire/native.generated'
import { approvalModes } from './approvalModes'
import { useMakeAgent } from './queries'

const good = /^[a-z0-9][a-z0-9_-]{0,62}$/

// MakeAgent creates an agent of the tenant, or edits a created one; see docs/agents.md. Fields that the form does not
// show keep their values.
export function MakeAgent({ was, close }: { was?: Definition; close: () => void }) {
  const navigate = useNavigate()
  const make = useMakeAgent()
  const [name, setName] = useState(was?.name ?? '')
  const [description, setDescription] = useState(was?.description ?? '')
  const [instructions, setInstructions] = useState(was?.instructions ?? '')
  const [model, setModel] = useState(was?.model ?? '')
  const [tools, setTools] = useState((was?.tools ?? ['*']).join(' '))
  const [approval, setApproval] = useState(was?.approval ?? '')
  const wrong =
    name !== '' && !good.test(name)
      ? 'Use up to 63 of the characters a-z, 0-9, - and _. Start with a letter or a digit.'
      : undefined
  const ready = good.test(name) && instructions.trim() !== ''

  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!ready) return
    const named = tools.split(/[\s,]+/).filter((tool) => tool !== '')
    make.mutate(
      {
        ...was,
        name,
        instructions,
        tools: named,
        description: description || undefined,
        model: model || undefined,
        approval: approval || undefined,
      },
      {
        onSuccess: (agent) => {
          close()
          void navigate({ to: '/agents/$id', params: { id: agent.id } })
        },
      },
    )
  }
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && close()}
      title={was === undefined ? 'New agent' : `Edit ${was.name}`}
      description={
        was === undefined
          ? 'The agent belongs to your tenant. You can edit and delete it here, unlike agents from files.'
          : 'Current runs continue with the previous definition.'
      }
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" form="make-agent" disabled={!ready} busy={make.isPending}>
            {was === undefined ? 'Create' : 'Save'}
          </Button>
        </>
      }
    >
      <form id="make-agent" onSubmit={submit} className="mt-4 flex flex-col gap-4">
        <Field label="Name" problem={wrong} hint="a-z, 0-9, - and _">
          {(control) => (
            <TextInput
              {...control}
              autoFocus
              disabled={was !== undefined}
              autoComplete="off"
              spellCheck={false}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field label="Instructions" hint="What the agent should do, and how. The model reads this first.">
          {(control) => (
            <TextArea
              {...control}
              rows={5}
              value={instructions}
              onChange={(event) => setInstructions(event.target.value)}
            />
          )}
        </Field>
        <Field label="Description" hint="Shown to people, and to agents that delegate work.">
          {(control) => (
            <TextInput {...control} value={description} onChange={(event) => setDescription(event.target.value)} />
          )}
        </Field>
        <Field label="Tools" hint="Names separated by spaces. * means all tools, an empty field means none.">
          {(control) => (
            <TextInput
              {...control}
              className="font-mono"
              spellCheck={false}
              value={tools}
              onChange={(event) => setTools(event.target.value)}
            />
          )}
        </Field>
        <Field label="Model" hint="Leave empty to use the default of the tenant.">
          {(control) => (
            <TextInput
              {...control}
              className="font-mono"
              spellCheck={false}
              value={model}
              onChange={(event) => setModel(event.target.value)}
            />
          )}
        </Field>
        <Field label="Approval">
          {(control) => (
            <Select {...control} value={approval} onChange={(event) => setApproval(event.target.value)}>
              <option value="">default of the tenant</option>
              {Object.entries(approvalModes).map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {make.error !== null && (
          <ErrorState
            what={was === undefined ? 'The agent was not created.' : 'The agent was not changed.'}
            error={make.error}
          />
        )}
      </form>
    </Dialog>
  )
}
