import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { Button } from '../ui/Button'
import { Confirm } from '../ui/Confirm'
import { ErrorState } from '../ui/ErrorState'
import { Field, TextInput } from '../ui/Field'
import { Mono } from '../ui/Mono'
import { Box } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { toast } from '../ui/toast'
import { ask } from '../wire/api'
import { useMe } from '../wire/me'
import type { ModelKey, ModelKeyTrial } from '../wire/native.generated'

const names: Record<string, string> = {
  anthropic: 'Anthropic',
  openai: 'OpenAI, or a compatible server',
  google: 'Google',
}

const keysQuery = {
  queryKey: ['model-keys'],
  queryFn: ({ signal }: { signal: AbortSignal }) => ask<{ keys: ModelKey[] }>('GET', '/api/v1/model-keys', { signal }),
}

// Models shows the connection to each vendor, and takes API keys. It is for servers in local mode.
export function Models() {
  const { me } = useMe()
  const { data, error, isPending, refetch } = useQuery(keysQuery)
  if (isPending) return <Spinner word="Loading models…" />
  if (data === undefined)
    return <ErrorState what="The models could not be loaded." error={error} retry={() => void refetch()} />
  return (
    <>
      {me?.demo && (
        <p className="rounded-lg border border-line bg-raised px-4 py-3 text-sm">
          The demo model answers now: its answers are scripted. Enter an API key to use a real model.
        </p>
      )}
      {data.keys.map((key) => (
        <Vendor key={key.vendor} vendor={key} />
      ))}
      <p className="text-xs text-ink-soft">
        Keys are stored encrypted on this machine and sent to their vendor only. Agents that name no model use{' '}
        <Mono>{me?.model ?? ''}</Mono>; <a href="#general" className="text-accent underline underline-offset-2">General</a>{' '}
        has another choice.
      </p>
    </>
  )
}

function stateOf({ from, variable, last }: ModelKey): string {
  const ending = last === undefined ? '' : `, it ends in ${last}`
  if (from === 'environment') return `Key from the environment (${variable})${ending}`
  if (from === 'console') return last === undefined ? 'Set up here, without a key' : `Key entered here${ending}`
  return 'No key'
}

function Vendor({ vendor }: { vendor: ModelKey }) {
  const queries = useQueryClient()
  const [key, setKey] = useState('')
  const [address, setAddress] = useState<string>()
  const [removing, setRemoving] = useState(false)
  const name = names[vendor.vendor] ?? vendor.vendor
  const path = `/api/v1/model-keys/${vendor.vendor}`
  const byEnvironment = vendor.from === 'environment'
  const body = byEnvironment ? {} : { key: key.trim(), base_url: (address ?? vendor.base_url ?? '').trim() }
  const test = useMutation({ mutationFn: () => ask<ModelKeyTrial>('POST', path + '/test', { body }) })
  // The list of models, and the model that answers, may have changed.
  const changed = () =>
    Promise.all(['model-keys', 'me', 'models'].map((queryKey) => queries.invalidateQueries({ queryKey: [queryKey] })))
  const save = useMutation({
    mutationFn: () => ask<ModelKey>('PUT', path, { body }),
    onSuccess: async () => {
      toast('Saved. New runs use it.')
      setKey('')
      setAddress(undefined)
      await changed()
    },
  })
  const nothing = body.key === '' && body.base_url === (vendor.base_url ?? '')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!nothing) save.mutate()
  }
  return (
    <section aria-label={name}>
      <Box className="flex flex-col gap-4 p-4">
        <header className="flex flex-wrap items-center gap-2">
          <h2 className="font-semibold">{name}</h2>
          <StatusBadge status={vendor.from === undefined ? 'idle' : 'done'}>{stateOf(vendor)}</StatusBadge>
          {vendor.from !== undefined && vendor.base_url !== undefined && <Mono>{vendor.base_url}</Mono>}
        </header>
        {vendor.problem !== undefined && <p className="text-sm text-failed">{vendor.problem}</p>}
        {byEnvironment ? (
          <p className="text-sm text-ink-soft">
            The environment of the server wins over this page.
            {vendor.stored && ' A key that was entered here is not used.'} To enter one here, remove{' '}
            <Mono>{vendor.variable}</Mono> and its base URL there, and restart the server.
          </p>
        ) : (
          <form onSubmit={submit} className="grid gap-4 sm:grid-cols-2">
            <Field
              label="API key"
              hint={vendor.stored ? 'Leave empty to keep the stored key.' : 'It is not shown again after you save it.'}
            >
              {(control) => (
                <TextInput
                  {...control}
                  type="password"
                  autoComplete="off"
                  spellCheck={false}
                  value={key}
                  onChange={(event) => setKey(event.target.value)}
                />
              )}
            </Field>
            <Field
              label="Base URL"
              hint={
                vendor.vendor === 'openai'
                  ? 'Leave empty for OpenAI. Ollama: http://127.0.0.1:11434/v1, without a key.'
                  : 'Leave empty for the vendor’s own address.'
              }
            >
              {(control) => (
                <TextInput
                  {...control}
                  type="url"
                  spellCheck={false}
                  value={address ?? vendor.base_url ?? ''}
                  onChange={(event) => setAddress(event.target.value)}
                />
              )}
            </Field>
            <button type="submit" hidden aria-hidden tabIndex={-1} />
          </form>
        )}
        <div className="flex flex-wrap gap-2">
          {!byEnvironment && (
            <Button kind="primary" busy={save.isPending} disabled={nothing} onClick={() => save.mutate()}>
              Save
            </Button>
          )}
          <Button
            busy={test.isPending}
            disabled={vendor.from === undefined && body.key === '' && body.base_url === ''}
            onClick={() => test.mutate()}
          >
            Test
          </Button>
          {vendor.stored && (
            <Button kind="quiet" onClick={() => setRemoving(true)}>
              Remove…
            </Button>
          )}
        </div>
        {save.error !== null && <ErrorState what="The key was not saved." error={save.error} />}
        {test.error !== null && <ErrorState what="The key was not tested." error={test.error} />}
        {test.data !== undefined && !test.isPending && <Result trial={test.data} />}
      </Box>
      {removing && (
        <Confirm
          title={`Remove the key of ${name}?`}
          yes="Remove"
          failed="The key was not removed."
          act={async () => {
            await ask('DELETE', path)
            await changed()
          }}
          onClose={() => setRemoving(false)}
        >
          New runs cannot use models of this vendor. Runs that have started continue.
        </Confirm>
      )}
    </section>
  )
}

function Result({ trial: { works, models = 0, names = [], reason } }: { trial: ModelKeyTrial }) {
  return (
    <p role="status" className="flex flex-wrap items-baseline gap-2 text-sm">
      <StatusBadge status={works ? 'done' : 'failed'}>{works ? 'works' : 'does not work'}</StatusBadge>
      <span className="min-w-0 break-words">
        {works ? `${models === 1 ? '1 model' : `${models} models`}: ${names.join(', ')}` : reason}
        {works && models > names.length && ' …'}
      </span>
    </p>
  )
}
