import type { SessionStatus } from '../wire/types-shell'

// What a session is doing, in colour, shape and words.
const looks: Record<SessionStatus, { word: string; look: string }> = {
  idle: { word: '', look: 'invisible' },
  running: { word: 'running', look: 'rounded-full bg-accent motion-safe:animate-pulse' },
  waiting: { word: 'waits for you', look: 'rotate-45 bg-waiting' },
  halted: { word: 'halted', look: 'bg-failed' },
}

export function StatusDot({ status }: { status: SessionStatus }) {
  const { word, look } = looks[status] ?? looks.idle
  return (
    <span className="flex size-4 shrink-0 items-center justify-center" title={word || undefined}>
      <span aria-hidden="true" className={`size-2 ${look}`} />
      {word !== '' && <span className="sr-only">{word}:</span>}
    </span>
  )
}
