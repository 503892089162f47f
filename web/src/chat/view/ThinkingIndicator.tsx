import { Since } from './Since'

// ThinkingIndicator names the current activity and its duration. It is still while the run waits for a person.
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
