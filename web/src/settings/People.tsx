import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Confirm } from '../ui/Confirm'
import { Button } from '../ui/Button'
import { CopyButton } from '../ui/CopyButton'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Field, Select, TextInput } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import { Box, Row, Rows, Section } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { toast } from '../ui/toast'
import { ask } from '../wire/api'
import { useMe } from '../wire/me'
import type { User } from '../wire/native.generated'

const most = 50 // page size

const withPeople = 'PARLEY_AUTH=jwt PARLEY_JWT_SECRET=$(openssl rand -hex 32) parley serve'

// People lists the users with sessions or other data here. The server has no list of accounts: a token identifies a
// user.
export function People() {
  const { me, may } = useMe()
  const [revoking, setRevoking] = useState<string>()
  const { data, error, isPending, isFetchingNextPage, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ['people'],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const path = `/api/v1/users?limit=${most}&cursor=${encodeURIComponent(pageParam)}`
      return ask<{ users: User[]; next?: string }>('GET', path, { signal })
    },
    getNextPageParam: ({ next }) => next,
    enabled: me !== undefined && me.auth !== 'local',
  })
  const people = data?.pages.flatMap(({ users }) => users)
  if (me?.auth === 'local')
    return (
      <EmptyState title="Only this machine can connect" action={<CopyButton words text={withPeople} />}>
        In local mode everybody at this machine is the same user. To let other people sign in, start the server with a
        secret and <Mono>PARLEY_AUTH=jwt</Mono>. Then this page lists people and revokes their tokens.
      </EmptyState>
    )
  return (
    <>
      <Section title="People">
        {error !== null && (
          <ErrorState what="The people could not be loaded." error={error} retry={() => void refetch()} />
        )}
        {isPending && error === null && <Spinner word="Loading people…" />}
        {people?.length === 0 && (
          <EmptyState title="Nobody has signed in yet">
            People appear here once they have signed in or sent a message. Create a token for the first one below.
          </EmptyState>
        )}
        {people !== undefined && people.length > 0 && (
          <Rows label="People">
            {people.map((person) => (
              <Row key={person.id}>
                <span className="min-w-0 grow basis-48 truncate font-medium">
                  <Exact>{person.id}</Exact>
                  {person.id === me?.user && <span className="ml-2 font-normal text-ink-soft">you</span>}
                </span>
                <span className="text-ink-soft">
                  {person.conversations === 1 ? '1 conversation' : `${person.conversations} conversations`}
                </span>
                <span className="w-32 text-right text-xs text-ink-soft">
                  last seen <RelativeTime at={person.seen_at} />
                </span>
                {may('users:write') && (
                  <Button small onClick={() => setRevoking(person.id)}>
                    Revoke tokens…
                  </Button>
                )}
              </Row>
            ))}
          </Rows>
        )}
        {hasNextPage && (
          <div>
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Load more people
            </Button>
          </div>
        )}
      </Section>
      {may('users:write') && (
        <Section title="Create a token">
          <CreateToken tenant={me?.tenant ?? 'default'} />
        </Section>
      )}
      {revoking !== undefined && (
        <Revoke user={revoking} self={revoking === me?.user} onClose={() => setRevoking(undefined)} />
      )}
    </>
  )
}

function Revoke({ user, self, onClose }: { user: string; self: boolean; onClose: () => void }) {
  const queries = useQueryClient()
  const revoke = useMutation({
    mutationFn: () =>
      ask<{ spared_roles?: string[] }>('POST', `/api/v1/users/${encodeURIComponent(user)}/revoke`, { body: {} }),
    onSuccess: ({ spared_roles: spared = [] }) => {
      toast(
        spared.length === 0
          ? `The tokens of ${user} are revoked.`
          : `The tokens of ${user} are revoked, except those with the roles ${spared.join(', ')}.`,
      )
      void queries.invalidateQueries({ queryKey: ['people'] })
    },
  })
  return (
    <Confirm
      title={`Revoke all tokens of ${user}?`}
      yes="Revoke"
      no="Keep them"
      failed="The tokens were not revoked."
      act={() => revoke.mutateAsync()}
      onClose={onClose}
    >
      All current tokens of {user} stop working, also in browsers. Runs that have started continue. New tokens work.
      {self && ' This signs you out.'}
    </Confirm>
  )
}

const roles: [string, string][] = [
  ['standard_user', 'standard_user: talks to agents'],
  ['read_only', 'read_only: reads, and changes nothing'],
  ['dept_head', 'dept_head: changes agents, sees people and the audit'],
  ['org_admin', 'org_admin: everything'],
]

// CreateToken writes the command that creates a token. The console does not create one: the secret stays with the
// operator.
function CreateToken({ tenant }: { tenant: string }) {
  const [user, setUser] = useState('')
  const [role, setRole] = useState('standard_user')
  const [ttl, setTtl] = useState('24h')
  const command = `parley token --user ${quoted(user || 'ann')} --tenant ${quoted(tenant)} --role ${role} --ttl ${ttl}`
  return (
    <Box className="flex flex-col gap-4 p-4">
      <div className="grid gap-4 sm:grid-cols-3">
        <Field label="User">
          {(control) => (
            <TextInput
              {...control}
              placeholder="ann"
              spellCheck={false}
              value={user}
              onChange={(event) => setUser(event.target.value)}
            />
          )}
        </Field>
        <Field label="Role">
          {(control) => (
            <Select {...control} className="w-full" value={role} onChange={(event) => setRole(event.target.value)}>
              {roles.map(([name, words]) => (
                <option key={name} value={name}>
                  {words}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Valid for">
          {(control) => (
            <Select {...control} className="w-full" value={ttl} onChange={(event) => setTtl(event.target.value)}>
              <option value="24h">a day</option>
              <option value="168h">a week</option>
              <option value="720h">30 days</option>
            </Select>
          )}
        </Field>
      </div>
      <div className="flex flex-wrap items-center gap-2">
        <Mono block quoted className="min-w-0 grow">
          {command}
        </Mono>
        <CopyButton words text={command} />
      </div>
      <p className="text-xs text-ink-soft">
        Run this where the server runs, with the same PARLEY_JWT_SECRET. The user pastes the token into the sign-in
        page.
      </p>
    </Box>
  )
}

// quoted quotes a word for a shell.
export function quoted(word: string): string {
  return /^[\w.@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
