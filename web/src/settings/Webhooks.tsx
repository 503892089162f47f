import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
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
import type { AuditEvent, Effect, Session, WebhookInfo } from '../wire/native.generated'

const events: Record<string, string> = { run_finished: 'a run ends', person_needed: 'a person is needed' }

interface Listed {
  session: string
  hook: WebhookInfo
}

// Webhooks lists the webhooks of conversations. The audit says which conversations were given one.
export function Webhooks() {
  const { may } = useMe()
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['webhooks'],
    enabled: may('audit:read'),
    queryFn: async ({ signal }): Promise<Listed[]> => {
      const list = async (action: string) => {
        const path = `/api/v1/audit/events?limit=200&action=${action}`
        return (await ask<{ events: AuditEvent[] }>('GET', path, { signal })).events
      }
      const [set, removed, deleted] = await Promise.all(
        ['webhook.set', 'webhook.removed', 'session.deleted'].map((action) => list(action)),
      )
      return Promise.all(
        standing(set!, [...removed!, ...deleted!]).map(async (session) => ({
          session,
          hook: await ask<WebhookInfo>('GET', `/api/v1/sessions/${session}/webhook`, { signal }),
        })),
      )
    },
  })
  const sessions = useSessions('', 200).data?.sessions ?? []
  const nameOf = (id: string) => {
    const session = sessions.find((one) => one.id === id)
    return session === undefined ? 'Conversation' : titleOf(session)
  }
  const [secret, setSecret] = useState<WebhookInfo>()
  const [removing, setRemoving] = useState<Listed>()
  return (
    <>
      <Section title="Webhooks of conversations">
        {!may('audit:read') && (
          <p className="text-sm text-ink-soft">
            The list needs the permission audit:read. You can still add a webhook below.
          </p>
        )}
        {error !== null && (
          <ErrorState what="The webhooks could not be loaded." error={error} retry={() => void refetch()} />
        )}
        {isPending && may('audit:read') && error === null && <Spinner word="Loading webhooks…" />}
        {data?.length === 0 && (
          <EmptyState title="No webhooks">
            A webhook is an address of yours that the server calls when a run ends or a person is needed. Add one to a
            conversation below; an agent’s file can name one for all of its runs.
          </EmptyState>
        )}
        {data !== undefined && data.length > 0 && (
          <Rows label="Webhooks">
            {data.map((one) => (
              <Row key={one.session}>
                <StatusBadge status={one.hook.status === 'active' ? 'done' : 'failed'}>{one.hook.status}</StatusBadge>
                <span className="min-w-0 grow basis-64">
                  <Mono className="break-all">{one.hook.url}</Mono>
                  <span className="block text-xs text-ink-soft">
                    when {one.hook.events.map((name) => events[name] ?? name).join(' or ')}, in{' '}
                    <Link
                      to="/chat/$session"
                      params={{ session: one.session }}
                      className="text-accent underline underline-offset-2"
                    >
                      <Exact>{nameOf(one.session)}</Exact>
                    </Link>
                  </span>
                </span>
                <RelativeTime at={one.hook.set_at} className="text-xs text-ink-soft" />
                {may('agents:message') && (
                  <Button small onClick={() => setRemoving(one)}>
                    Remove…
                  </Button>
                )}
              </Row>
            ))}
          </Rows>
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

// standing are the sessions whose last record is that a webhook was set.
export function standing(set: AuditEvent[], gone: AuditEvent[]): string[] {
  const last = new Map<string, number>()
  for (const { resource_id: id = '', id: no } of gone) last.set(id, Math.max(last.get(id) ?? 0, Number(no)))
  const ids = set.flatMap(({ resource_id: id = '', id: no }) => (Number(no) > (last.get(id) ?? 0) ? [id] : []))
  return [...new Set(ids)]
}

// Secret shows the secret of a new webhook: the server does not tell it again.
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
          <Field label="Conversation" hint="A webhook that it has already is replaced.">
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
          <Field label="Address" hint="https, and not inside your network unless the operator allows that.">
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

function Remove({ one, onClose }: { one: Listed; onClose: () => void }) {
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
      <Mono className="break-all">{one.hook.url}</Mono> is not called any more. Messages that are not delivered yet are
      cancelled.
    </Confirm>
  )
}

function Deliveries() {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['webhooks', 'deliveries'],
    queryFn: ({ signal }) => ask<{ effects: Effect[] }>('GET', '/api/v1/effects?limit=200', { signal }),
    select: ({ effects }) => effects.filter((effect) => effect.type === 'webhook').slice(0, 50),
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
