import { useEffect, useState } from 'react'
import type { Connection } from '../wire/connection'

const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })

// A short loss of the connection is not shown: a banner that flashes often
// teaches users to ignore it.
const patience = 1_500

// Offline shows since when the server has been unreachable. Typed text stays in the page and in its drafts.
export function Offline({ connection }: { connection: Connection }) {
  const [shown, setShown] = useState(false)
  const lost = connection.state !== 'online' && connection.since !== undefined
  useEffect(() => {
    if (!lost) return setShown(false)
    const timer = setTimeout(() => setShown(true), patience)
    return () => clearTimeout(timer)
  }, [lost])
  return (
    <div
      role="status"
      className={
        shown && lost
          ? 'flex flex-wrap items-center gap-x-3 border-b border-waiting bg-waiting-soft px-4 py-2 text-sm text-waiting'
          : undefined
      }
    >
      {shown && lost && (
        <>
          <span>
            Offline: no connection to the server since {time.format(connection.since)}. Parley reconnects by itself, and
            keeps what you typed.
          </span>
          <button className="rounded underline" onClick={connection.again}>
            Try now
          </button>
        </>
      )}
    </div>
  )
}

// Online shows the same in one word, for the rail.
export function Online({ connection }: { connection: Connection }) {
  const look = {
    online: 'rounded-full bg-done',
    connecting: 'rounded-full border border-ink-soft',
    offline: 'rotate-45 bg-waiting',
  }[connection.state]
  return (
    <span className="flex items-center gap-1.5">
      <span aria-hidden="true" className={`size-2 ${look}`} />
      {connection.state}
      {connection.state !== 'online' && connection.since !== undefined && ` since ${time.format(connection.since)}`}
    </span>
  )
}
