import { classes } from '../../ui/classes'
import type { ContextUsage } from '../../wire/bus.generated'
import { short } from '../../ui/amounts'

// ContextMeter shows how full the context window of the model is.
export function ContextMeter({ usage, className }: { usage: ContextUsage; className?: string }) {
  const share = usage.token_limit > 0 ? Math.min(1, usage.estimated_tokens / usage.token_limit) : 0
  const percent = Math.round(share * 100)
  const words =
    usage.token_limit > 0
      ? `${short(usage.estimated_tokens)} of ${short(usage.token_limit)} tokens`
      : `${short(usage.estimated_tokens)} tokens`
  return (
    <div
      className={classes('flex items-center gap-2 text-xs text-ink-soft', className)}
      title={`The context has ${words} in ${usage.message_count} messages${usage.compressed ? ' (compacted)' : ''}.`}
    >
      <div
        role="meter"
        aria-label="Context used"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
        aria-valuetext={words}
        className="h-1.5 w-16 overflow-hidden rounded-full bg-sunken"
      >
        <div
          className={classes(
            'h-full rounded-full',
            share > 0.9 ? 'bg-failed' : share > 0.7 ? 'bg-waiting' : 'bg-accent',
          )}
          style={{ width: `${Math.max(share * 100, 2)}%` }}
        />
      </div>
      <span className="whitespace-nowrap tabular-nums">{words}</span>
    </div>
  )
}
