import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { titleOf, useSessions } from '../shell/sessions'
import { Button } from '../ui/Button'
import { Confirm } from '../ui/Confirm'
import { CopyButton } from '../ui/CopyButton'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Field, Select, TextInput } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import { Box, Row, Rows, Section } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { ask } from '../wire/api'
import { useMe } from '../wire/me'
import type { Effect, Session, SessionWebhook, WebhookInfo, WebhookTrial } from '../wire/native.generated'

const events: Record<string, string> = { run_finished: 'a run ends', person_needed: 'a person is needed' }

const most = 50 // page size

// Webhooks lists the webhooks of the conversations that the user may act in.
export function Webhooks() {
  const { may } = useMe()
  const { data, error, isPending, isFetchingNextPage, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ['webhooks'],
    enabled: may('agents:message'),
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const path = `/api/v1/webhooks?limit=${most}&cursor=${pageParam}`
      return ask<{ webhooks: SessionWebhook[]; next?: string }>('GET', path, { signal })
    },
    getNextPageParam: ({ next }) => next,
  })
  const listed = data?.pages.flatMap(({ webhooks }) => webhooks)
  const sessions = useSessions('', 200).data?.sessions ?? []
  const [secret, setSecret] = useState<WebhookInfo>()
  const [removing, setRemoving] = useState<SessionWebhook>()
  return (
    <>
      <Section title="Webhooks of conversations">
        {!may('agents:message') && (
          <p className="text-sm text-ink-soft">
            The list needs the permission agents:message, because an address may hold a secret.
          </p>
        )}
        {error !== null && (
          <ErrorState what="The webhooks could not be loaded." error={error} retry={() => void refetch()} />
        )}
        {isPending && may('agents:message') && error === null && <Spinner word="Loading webhooks…" />}
        {listed?.length === 0 && (
          <EmptyState title="No webhooks">
            A webhook is an address that the server calls when a run ends or needs a person. Add one to a conversation
            below. The file of an agent can name one for all of its runs.
          </EmptyState>
        )}
        {listed !== undefined && listed.length > 0 && (
          <Rows label="Webhooks">
            {listed.map((one) => (
              <Listed key={one.session} one={one} remove={() => setRemoving(one)} />
            ))}
          </Rows>
        )}
        {hasNextPage && (
          <div>
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Load more webhooks
            </Button>
          </div>
        )}
        {secret !== undefined && <Secret hook={secret} />}
      </Section>
      {may('agents:message') && (
        <Section title="Add a webhook">
          <Add sessions={sessions} added={setSecret} />
        </Section>
      )}
      <Section title="Last deliveries">
        <Deliveries />
      </Section>
      {removing !== undefined && <Remove one={removing} onClose={() => setRemoving(undefined)} />}
    </>
  )
}

function Listed({ one, remove }: { one: SessionWebhook; remove: () => void }) {
  const test = useMutation({
    mutationFn: () => ask<WebhookTrial>('POST', `/api/v1/sessions/${one.session}/webhook/test`, { body: {} }),
  })
  return (
    <Row>
      <StatusBadge status={one.status === 'active' ? 'done' : 'failed'}>{one.status}</StatusBadge>
      <span className="min-w-0 grow basis-64">
        <Mono className="break-all">{one.url}</Mono>
        <span className="block text-xs text-ink-soft">
          when {one.events.map((name) => events[name] ?? name).join(' or ')}, in{' '}
          <Link
            to="/chat/$session"
            params={{ session: one.session }}
            className="text-accent underline underline-offset-2"
          >
            <Exact>{one.title || 'Conversation'}</Exact>
          </Link>
        </span>
      </span>
      <RelativeTime at={one.set_at} className="text-xs text-ink-soft" />
      <Button small busy={test.isPending} onClick={() => test.mutate()}>
        Send a test
      </Button>
      <Button small onClick={remove}>
        Remove…
      </Button>
      {(test.data !== undefined || test.error !== null) && (
        <div role="status" className="flex w-full flex-col gap-2">
          {test.error !== null && <ErrorState what="The test was not sent." error={test.error} />}
          {test.data !== undefined && <Tested trial={test.data} />}
        </div>
      )}
    </Row>
  )
}

// Tested shows the receiver's answer to a test message.
function Tested({ trial }: { trial: WebhookTrial }) {
  const { delivered, status, milliseconds, reason, answer, withheld } = trial
  return (
    <>
      <p className="flex flex-wrap items-center gap-2">
        <StatusBadge status={delivered ? 'done' : 'failed'}>{delivered ? 'delivered' : 'not delivered'}</StatusBadge>
        <span>
          {status !== undefined ? `Status ${status} after ${milliseconds} ms.` : `No answer after ${milliseconds} ms.`}
          {reason !== undefined && ` ${reason[0]!.toUpperCase()}${reason.slice(1)}.`}
        </span>
      </p>
      {answer !== undefined && (
        <Mono block className="max-h-60 text-xs">
          {answer}
        </Mono>
      )}
      {withheld && (
        <p className="text-xs text-ink-soft">
          The answer comes from a private address, so only users with tenant:write see it.
        </p>
      )}
    </>
  )
}

// Secret shows the secret of a new webhook: the server does not send it again.
function Secret({ hook }: { hook: WebhookInfo }) {
  return (
    <div
      role="status"
      className="flex flex-col gap-2 rounded-lg border border-waiting bg-waiting-soft px-4 py-3 text-sm"
    >
      <p>
        The receiver checks the signature of each message with this secret. Copy it now: it is shown only this once.
      </p>
      <div className="flex flex-wrap items-center gap-2">
        <Mono block className="min-w-0 grow break-all">
          {hook.secret ?? ''}
        </Mono>
        <CopyButton words text={hook.secret ?? ''} />
      </div>
    </div>
  )
}

function Add({ sessions, added }: { sessions: Session[]; added: (hook: WebhookInfo) => void }) {
  const queries = useQueryClient()
  const [session, setSession] = useState('')
  const [url, setUrl] = useState('')
  const [chosen, setChosen] = useState(Object.keys(events))
  const add = useMutation({
    mutationFn: () =>
      ask<WebhookInfo>('PUT', `/api/v1/sessions/${session || sessions[0]?.id}/webhook`, {
        body: { url: url.trim(), events: chosen },
      }),
    onSuccess: (hook) => {
      added(hook)
      setUrl('')
      void queries.invalidateQueries({ queryKey: ['webhooks'] })
    },
  })
  if (sessions.length === 0)
    return (
      <p className="text-sm text-ink-soft">
        A webhook belongs to a conversation.{' '}
        <Link to="/" className="text-accent underline underline-offset-2">
          Start one
        </Link>
        .
      </p>
    )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Box className="flex flex-col gap-4 p-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Conversation" hint="One of your latest 200. The new webhook replaces the one that it has.">
            {(control) => (
              <Select
                {...control}
                className="w-full"
                value={session || sessions[0]!.id}
                onChange={(event) => setSession(event.target.value)}
              >
                {sessions.map((one) => (
                  <option key={one.id} value={one.id}>
                    {titleOf(one)}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Field label="Address" hint="With https. The operator must allow addresses inside the network.">
            {(control) => (
              <TextInput
                {...control}
                type="url"
                required
                placeholder="https://hooks.example.com/parley"
                value={url}
                onChange={(event) => setUrl(event.target.value)}
              />
            )}
          </Field>
        </div>
        <fieldset className="flex flex-wrap gap-4 text-sm">
          <legend className="mb-1 font-medium">Call it when</legend>
          {Object.entries(events).map(([name, words]) => (
            <label key={name} className="flex items-center gap-2">
              <input
                type="checkbox"
                className="accent-accent"
                checked={chosen.includes(name)}
                onChange={(event) =>
                  setChosen(event.target.checked ? [...chosen, name] : chosen.filter((other) => other !== name))
                }
              />
              {words}
            </label>
          ))}
        </fieldset>
        {add.error !== null && <ErrorState what="The webhook was not added." error={add.error} />}
        <div>
          <Button type="submit" kind="primary" busy={add.isPending} disabled={url.trim() === '' || chosen.length === 0}>
            Add the webhook
          </Button>
        </div>
      </Box>
    </form>
  )
}

function Remove({ one, onClose }: { one: SessionWebhook; onClose: () => void }) {
  const queries = useQueryClient()
  return (
    <Confirm
      title="Remove this webhook?"
      yes="Remove"
      failed="The webhook was not removed."
      act={async () => {
        await ask('DELETE', `/api/v1/sessions/${one.session}/webhook`)
        await queries.invalidateQueries({ queryKey: ['webhooks'] })
      }}
      onClose={onClose}
    >
      The server no longer calls <Mono className="break-all">{one.url}</Mono>. It cancels the messages that are not
      delivered yet.
    </Confirm>
  )
}

function Deliveries() {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['webhooks', 'deliveries'],
    queryFn: ({ signal }) => ask<{ effects: Effect[] }>('GET', `/api/v1/effects?type=webhook&limit=${most}`, { signal }),
    select: ({ effects }) => effects,
  })
  if (isPending) return <Spinner word="Loading deliveries…" />
  if (data === undefined)
    return <ErrorState what="The deliveries could not be loaded." error={error} retry={() => void refetch()} />
  if (data.length === 0) return <p className="text-sm text-ink-soft">No webhook was called yet.</p>
  return (
    <Rows label="Deliveries">
      {data.map((effect) => (
        <Row key={effect.id}>
          <StatusBadge status={effect.status === 'pending' ? 'waiting' : effect.status}>
            {effect.status === 'completed' ? 'delivered' : effect.status}
          </StatusBadge>
          <span className="min-w-0 grow basis-48 break-words">
            <Mono>{effect.hook?.target ?? ''}</Mono> <span className="text-ink-soft">{effect.why}</span>
          </span>
          <span className="text-xs text-ink-soft">
            {effect.attempts === 1 ? '1 attempt' : `${effect.attempts} attempts`}
          </span>
          <RelativeTime at={effect.created_at} className="text-xs text-ink-soft" />
        </Row>
      ))}
    </Rows>
  )
}
