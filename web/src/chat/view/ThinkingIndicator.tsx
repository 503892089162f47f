import { Since } from './Since'

// ThinkingIndicator says that something is going on, what, and since when. Still:
// nothing goes on before a person does something.
export function ThinkingIndicator({ word, sinceMs, still }: { word: string; sinceMs?: number; still?: boolean }) {
  return (
    <p role="status" className="flex items-center gap-2 text-sm text-ink-soft">
      {still ? (
        <span aria-hidden="true" className="text-xs text-waiting">
          ◐
        </span>
      ) : (
        <span aria-hidden="true" className="flex gap-1">
          {[0, 1, 2].map((dot) => (
            <span
              key={dot}
              className="size-1.5 animate-pulse rounded-full bg-accent"
              style={{ animationDelay: `${dot * 180}ms` }}
            />
          ))}
        </span>
      )}
      {word}
      {sinceMs !== undefined && <Since at={sinceMs} />}
    </p>
  )
}
