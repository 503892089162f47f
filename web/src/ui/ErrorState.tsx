import { Problem } from '../wire/api'
import { Button } from './Button'
import { classes } from './classes'
import { RetryIcon, WarningIcon } from './icons'

interface ErrorStateProps {
  what: string // what failed: "The agents could not be listed."
  error: unknown
  retry?: () => void
  className?: string
}

export function why(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

// ErrorState says what failed and why, and offers to try again.
export function ErrorState({ what, error, retry, className }: ErrorStateProps) {
  return (
    <div
      role="alert"
      className={classes(
        'flex flex-wrap items-start gap-3 rounded-md border border-failed bg-failed-soft px-4 py-3 text-sm',
        className,
      )}
    >
      <WarningIcon className="mt-0.5 size-4 shrink-0 text-failed" />
      <div className="min-w-0 grow basis-56">
        <p className="font-medium">{what}</p>
        <p className="break-words text-ink-soft">
          {why(error)}
          {error instanceof Problem && error.code !== '' && <span className="font-mono text-xs"> ({error.code})</span>}
        </p>
      </div>
      {retry !== undefined && (
        <Button small onClick={retry}>
          <RetryIcon /> Try again
        </Button>
      )}
    </div>
  )
}
