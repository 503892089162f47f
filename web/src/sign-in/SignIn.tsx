import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useId, useState, type FormEvent } from 'react'
import { Mark, Wordmark } from '../ui/Brand'
import { Button } from '../ui/Button'
import { TextInput } from '../ui/Field'
import { WarningIcon } from '../ui/icons'
import { Mono } from '../ui/Mono'
import { ask, Problem } from '../wire/api'
import type { Me } from '../wire/native.generated'
import { signIn } from './session'

// SignInWays is the answer to GET /auth/options.
interface SignInWays {
  oidc: boolean
  issuer?: string
}

// SignIn replaces the console while no user is signed in.
export function SignIn() {
  const queries = useQueryClient()
  const [text, setText] = useState('')
  const [wrong, setWrong] = useState(cameBack)
  const [asking, setAsking] = useState(false)
  const note = useId()
  const ways = useQuery({
    queryKey: ['sign-in'],
    queryFn: ({ signal }) => ask<SignInWays>('GET', '/auth/options', { signal }),
  })
  useEffect(() => {
    document.title = 'Sign in · Parley'
  }, [])
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setAsking(true)
    try {
      await signIn(text.trim())
      setText('')
      const me = await ask<Me>('GET', '/api/v1/me')
      queries.removeQueries({ predicate: (q) => q.queryKey[0] !== 'me' }) // remove the data of the previous user
      queries.setQueryData(['me'], me)
    } catch (error) {
      setWrong(
        error instanceof Problem && error.status !== 401
          ? error.message
          : `This token was not accepted: ${error instanceof Error ? error.message : String(error)}`,
      )
    } finally {
      setAsking(false)
    }
  }
  return (
    <main className="flex min-h-full items-center justify-center bg-raised p-4 sm:p-6">
      <div className="w-full max-w-md rounded-xl border border-line bg-paper p-6 shadow-sm sm:p-8">
        <div className="mb-6 flex items-center gap-3">
          <Mark className="size-10" />
          <Wordmark className="h-7 w-auto" />
        </div>
        <h1 className="text-lg font-semibold">Sign in to Parley</h1>
        <p className="mb-5 text-sm text-ink-soft">
          This is the server at <Mono>{location.host}</Mono>
          {ways.data?.oidc ? '. Use your account, or an access token.' : '. You need an access token to use it.'}
        </p>
        {!encrypted() && (
          <p className="mb-4 flex items-start gap-2 rounded-md bg-waiting-soft px-3 py-2 text-sm text-waiting">
            <WarningIcon className="mt-1 shrink-0" />
            The connection to this server is not encrypted. Others on the network can read your token.
          </p>
        )}
        {wrong !== '' && (
          <p role="alert" className="mb-4 rounded-md border border-failed bg-failed-soft px-3 py-2 text-sm text-failed">
            {wrong}
          </p>
        )}
        {ways.data?.oidc && (
          <>
            <a
              href={`/auth/login?to=${encodeURIComponent(here())}`}
              className="flex min-h-11 items-center justify-center rounded-md bg-accent px-3 text-sm font-medium text-accent-ink"
            >
              Sign in with {ways.data.issuer ?? 'your identity provider'}
            </a>
            <p className="my-4 flex items-center gap-3 text-xs text-ink-soft before:h-px before:grow before:bg-line after:h-px after:grow after:bg-line">
              or use an access token
            </p>
          </>
        )}
        <form onSubmit={(e) => void submit(e)} className="flex flex-col gap-2">
          <label className="text-sm font-medium" htmlFor={`${note}-token`}>
            Access token
          </label>
          <TextInput
            id={`${note}-token`}
            type="password"
            autoComplete="off"
            spellCheck={false}
            aria-describedby={note}
            className="min-h-11 font-mono"
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
          <Button
            type="submit"
            kind={ways.data?.oidc ? 'plain' : 'primary'}
            className="min-h-11"
            disabled={text.trim() === '' || asking}
          >
            {asking ? 'Signing in…' : 'Sign in with this token'}
          </Button>
          <p id={note} className="mt-2 text-xs text-ink-soft">
            An access token is a long text that starts with “eyJ”. The administrator of this server makes one with{' '}
            <Mono>parley token</Mono>. You stay signed in, in all tabs of this browser, until the token expires or you
            sign out. No page can read the token.
          </p>
        </form>
      </div>
    </main>
  )
}

// encrypted says whether the connection is private: https, or a server on this machine.
function encrypted(): boolean {
  return window.isSecureContext
}

// The messages for a failed sign-in, by the code that the server puts into the address. Other codes are ignored: an
// address can be forged.
const endings: Record<string, string> = {
  state: 'This sign-in was started in another window, or more than once. Start again.',
  expired: 'The sign-in took too long. Start again.',
  refused: 'The identity provider did not confirm who you are.',
  nobody: 'You have no role on this server. Ask its administrator for one.',
  often: 'There were too many attempts to sign in. Wait a minute, then start again.',
  unavailable: 'The identity provider cannot be reached. Try again later.',
}

function cameBack(): string {
  return endings[new URLSearchParams(location.search).get('sign_in') ?? ''] ?? ''
}

// here returns the address to return to: a place in the console, never another site. The reason of a failed sign-in is
// not a part of it.
function here(): string {
  const search = new URLSearchParams(location.search).has('sign_in') ? '' : location.search
  return location.pathname + search + location.hash
}
