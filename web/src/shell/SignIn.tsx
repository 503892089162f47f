import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useId, useState, type FormEvent } from 'react'
import { ask, keepToken, Problem } from '../wire/api'
import type { Me } from '../wire/native.generated'

// SignInWays is the answer to GET /auth/options.
interface SignInWays {
  oidc: boolean
  issuer?: string
}

// SignIn replaces the console while nobody is signed in.
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
    keepToken(text.trim())
    try {
      const me = await ask<Me>('GET', '/api/v1/me')
      queries.removeQueries({ predicate: (q) => q.queryKey[0] !== 'me' }) // nothing of who was here before
      queries.setQueryData(['me'], me)
    } catch (error) {
      keepToken(null)
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
    <main className="mx-auto flex min-h-full max-w-md flex-col justify-center p-6">
      <h1 className="mb-1 text-lg font-semibold">Sign in to Parley</h1>
      <p className="mb-6 text-ink-soft">
        {ways.data?.oidc ? 'Use your account, or an access token.' : 'You need an access token to use this server.'}
      </p>
      {wrong !== '' && (
        <p role="alert" className="mb-4 rounded border border-failed bg-failed-soft px-3 py-2 text-sm text-failed">
          {wrong}
        </p>
      )}
      {ways.data?.oidc && (
        <>
          <a
            href={`/auth/login?to=${encodeURIComponent(here())}`}
            className="rounded bg-accent px-3 py-2 text-center text-sm font-medium text-accent-ink"
          >
            Sign in with {ways.data.issuer ?? 'your identity provider'}
          </a>
          <p className="my-4 text-center text-xs text-ink-soft">or use an access token</p>
        </>
      )}
      <form onSubmit={(e) => void submit(e)}>
        <label className="mb-1 block text-sm" htmlFor={`${note}-token`}>
          Access token
        </label>
        <input
          id={`${note}-token`}
          type="password"
          autoComplete="off"
          spellCheck={false}
          aria-describedby={note}
          className="w-full rounded border border-line-strong bg-paper px-3 py-2 font-mono text-sm"
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
        <p id={note} className="mt-1 mb-4 text-xs text-ink-soft">
          An access token is a long text that starts with “eyJ”. The administrator of this server can give you one. It
          is kept in this tab until you close it.
        </p>
        <button
          className="rounded border border-line-strong px-3 py-1.5 text-sm"
          disabled={text.trim() === '' || asking}
        >
          {asking ? 'Signing in…' : 'Sign in with this token'}
        </button>
      </form>
      <p className="mt-6 text-xs text-ink-soft">
        Are you the administrator? Create a token with{' '}
        <code className="font-mono">parley token --user NAME --role standard_user</code>.
      </p>
    </main>
  )
}

// How a sign-in can end, by the words that the server puts into the address. Any other word is left alone: an address
// can be made up.
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

// here is where to come back to: a place in the console, never another site.
function here(): string {
  return location.pathname
}
