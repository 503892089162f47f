// The status of a session, in colour, shape and words.
const idle = { word: '', look: 'invisible' }
const looks: Record<string, { word: string; look: string }> = {
  running: { word: 'running', look: 'rounded-full bg-accent motion-safe:animate-pulse' },
  waiting: { word: 'waiting for you', look: 'rotate-45 bg-waiting' },
  halted: { word: 'halted', look: 'bg-failed' },
}

export function StatusDot({ status }: { status: string }) {
  const { word, look } = looks[status] ?? idle
  return (
    <span className="flex size-4 shrink-0 items-center justify-center" title={word || undefined}>
      <span aria-hidden="true" className={`size-2 ${look}`} />
      {word !== '' && <span className="sr-only">{word}:</span>}
    </span>
  )
}
