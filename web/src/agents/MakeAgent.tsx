import { useNavigate } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { Button } from '../ui/Button'
import { Dialog } from '../ui/Dialog'
import { ErrorState } from '../ui/ErrorState'
import { Field, Select, TextArea, TextInput } from '../ui/Field'
import type { Definition } from '../wire/native.generated'
import { useMakeAgent } from './queries'

const good = /^[a-z0-9][a-z0-9_-]{0,62}$/

// MakeAgent makes an agent of the tenant's own, or changes one that was made; see
// docs/agents.md. What the form does not show stays as it was.
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
    name !== '' && !good.test(name) ? 'Up to 63 of a-z, 0-9, - and _, beginning with a letter or digit.' : undefined
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
      title={was === undefined ? 'New agent' : `Change ${was.name}`}
      description={
        was === undefined
          ? 'It belongs to your tenant, and can be changed and deleted. Agents from files stay the operator’s.'
          : 'Runs that have begun go on with what it was.'
      }
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" form="make-agent" disabled={!ready} busy={make.isPending}>
            {was === undefined ? 'Make it' : 'Save'}
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
        <Field label="Instructions" hint="What the agent is told before everything else.">
          {(control) => (
            <TextArea
              {...control}
              rows={5}
              value={instructions}
              onChange={(event) => setInstructions(event.target.value)}
            />
          )}
        </Field>
        <Field label="Description" hint="For people, and for agents that delegate.">
          {(control) => (
            <TextInput {...control} value={description} onChange={(event) => setDescription(event.target.value)} />
          )}
        </Field>
        <Field label="Tools" hint="Names with spaces between, * for all, nothing for none.">
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
        <Field label="Model" hint="Leave empty for the tenant’s.">
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
              <option value="">the tenant’s</option>
              <option value="suggest">suggest: changes and commands ask</option>
              <option value="auto-edit">auto-edit: changes to files run</option>
              <option value="full-auto">full-auto: all of it runs, in the sandbox</option>
            </Select>
          )}
        </Field>
        {make.error !== null && (
          <ErrorState
            what={was === undefined ? 'The agent was not made.' : 'The agent was not changed.'}
            error={make.error}
          />
        )}
      </form>
    </Dialog>
  )
}
