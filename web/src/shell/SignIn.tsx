import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useId, useState, type FormEvent } from 'react'
import { ask, keepToken, Problem } from '../wire/api'
import type { Me } from '../wire/native.generated'

// SignInWays is the answer to GET /auth/options.
interface SignInWays {
  oidc: boolean
  issuer?: string
}

// SignIn stands in for the console where the server does not know who asks.
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
          : `This token does not let you in: ${error instanceof Error ? error.message : String(error)}`,
      )
    } finally {
      setAsking(false)
    }
  }
  return (
    <main className="mx-auto flex min-h-full max-w-md flex-col justify-center p-6">
      <h1 className="mb-1 text-lg font-semibold">Sign in to Parley</h1>
      <p className="mb-6 text-ink-soft">This server wants to know who you are.</p>
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
          <p className="my-4 text-center text-xs text-ink-soft">or</p>
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
          It is kept until you close this tab. Who runs the server makes one with{' '}
          <code className="font-mono">parley token --user NAME --role standard_user</code>.
        </p>
        <button
          className="rounded border border-line-strong px-3 py-1.5 text-sm"
          disabled={text.trim() === '' || asking}
        >
          {asking ? 'Signing in…' : 'Sign in with this token'}
        </button>
      </form>
    </main>
  )
}

// What a sign-in can come to, by the words of the server. Any other word says
// nothing: anybody can make up an address.
const endings: Record<string, string> = {
  state: 'That sign-in was begun elsewhere, or twice. Begin again.',
  expired: 'That took too long. Begin again.',
  refused: 'The identity provider did not vouch for you.',
  nobody: 'You are known, and have no role here. Ask who runs this server for one.',
  often: 'That is too often. Wait a minute, and begin again.',
  unavailable: 'The identity provider cannot be reached. Try again in a while.',
}

function cameBack(): string {
  return endings[new URLSearchParams(location.search).get('sign_in') ?? ''] ?? ''
}

// here is where to come back to: a place in the console, never another site.
function here(): string {
  return location.pathname
}
