import { Since } from './Since'

// ThinkingIndicator names the current activity and its duration.
export function ThinkingIndicator({ word, sinceMs }: { word: string; sinceMs?: number }) {
  return (
    <p role="status" className="flex items-center gap-2 text-sm text-ink-soft">
      <span aria-hidden="true" className="flex gap-1">
        {[0, 1, 2].map((dot) => (
          <span
            key={dot}
            className="size-1.5 animate-pulse rounded-full bg-accent"
            style={{ animationDelay: `${dot * 180}ms` }}
          />
        ))}
      </span>
      {word}
      {sinceMs !== undefined && <Since at={sinceMs} />}
    </p>
  )
}
