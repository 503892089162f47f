import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { why } from '../../ui/ErrorState'
import { Field, TextInput } from '../../ui/Field'
import { CheckIcon, ChevronDownIcon } from '../../ui/icons'
import { Menu, MenuItem, MenuLine } from '../../ui/Menu'
import { useMe } from '../../wire/me'
import type { Agent } from '../../wire/native.generated'
import { aboutModel } from '../model/models'
import { useModels } from './queries'

interface ModelPickerProps {
  agent?: Agent
  chosen?: string // for this conversation; none: the agent's
  onChoose: (model?: string) => void
}

// ModelPicker chooses the model of the next message, for this conversation only. It is only for users who may change
// agents; for other users the header shows which model answered.
export function ModelPicker({ agent, chosen, onChoose }: ModelPickerProps) {
  const { me, may } = useMe()
  const navigate = useNavigate()
  const mayChoose = may('agents:write')
  const [opened, setOpened] = useState(false) // vendors are queried only then
  const { data: models = [], isFetching, error } = useModels(mayChoose && opened)
  const [naming, setNaming] = useState<string | null>(null)
  const own = agent?.model || me?.model
  if (!mayChoose || own === undefined || own === '' || agent?.status === 'unreachable') return null

  const others = models.filter((model) => model.id !== own)
  if (chosen !== undefined && chosen !== own && !others.some((model) => model.id === chosen))
    others.unshift({ id: chosen, provider: '', default: false })
  const about = models.find((model) => model.id === own)
  return (
    <>
      <Menu
        align="start"
        onOpenChange={(open) => open && setOpened(true)}
        items={
          <div className="max-h-[50dvh] overflow-y-auto">
            <p className="px-2 py-1 text-xs text-ink-soft">For this conversation, from the next message on</p>
            <Choice name={own} is={chosen === undefined} about={about && aboutModel(about)} choose={() => onChoose()}>
              the agent’s
            </Choice>
            {others.map((model) => (
              <Choice
                key={model.id}
                name={model.id}
                is={model.id === chosen}
                about={aboutModel(model)}
                choose={() => onChoose(model.id)}
              />
            ))}
            {isFetching && models.length === 0 && (
              <p role="status" className="px-2 py-1 text-xs text-ink-soft">
                Loading the list of models…
              </p>
            )}
            {error !== null && (
              <p role="alert" className="max-w-72 px-2 py-1 text-xs text-failed">
                The models could not be listed. {why(error)}
              </p>
            )}
            <MenuLine />
            <MenuItem onSelect={() => setNaming('')}>Another model…</MenuItem>
            {me?.auth === 'local' && (
              <MenuItem onSelect={() => void navigate({ to: '/settings', hash: 'models' })}>
                {me.demo ? 'Enter an API key for a real model…' : 'API keys…'}
              </MenuItem>
            )}
          </div>
        }
      >
        <Button small kind="quiet" className="min-w-0 !shrink" aria-label={`Model: ${chosen ?? own}. Choose another`}>
          <span className="max-w-24 truncate @lg:max-w-40">{chosen ?? own}</span> <ChevronDownIcon className="shrink-0" />
        </Button>
      </Menu>
      <Dialog
        open={naming !== null}
        onOpenChange={(open) => !open && setNaming(null)}
        title="Another model"
        description="This conversation uses it from the next message on. The server needs the API key of its vendor."
        actions={
          <>
            <Button onClick={() => setNaming(null)}>Cancel</Button>
            <Button
              kind="primary"
              disabled={(naming ?? '').trim() === ''}
              onClick={() => {
                onChoose((naming ?? '').trim())
                setNaming(null)
              }}
            >
              Use this model
            </Button>
          </>
        }
      >
        <div className="mt-3">
          <Field label="Name of the model" hint="claude-sonnet-4-5, gpt-4.1, gemini-2.5-pro, llama3.2 …">
            {(control) => (
              <TextInput {...control} value={naming ?? ''} onChange={(event) => setNaming(event.target.value)} />
            )}
          </Field>
        </div>
      </Dialog>
    </>
  )
}

interface ChoiceProps {
  name: string
  is: boolean
  about?: string
  choose: () => void
  children?: string
}

function Choice({ name, is, about, choose, children }: ChoiceProps) {
  return (
    <MenuItem onSelect={choose} hint={children}>
      <CheckIcon className={is ? 'shrink-0' : 'invisible shrink-0'} />
      <span className="flex min-w-0 flex-col py-1">
        <span className="font-medium">
          {name}
          {is && <span className="sr-only"> (chosen)</span>}
        </span>
        {about !== undefined && about !== '' && <span className="text-xs text-ink-soft">{about}</span>}
      </span>
    </MenuItem>
  )
}
