import { Button } from './Button'
import { classes } from './classes'
import { RetryIcon, WarningIcon } from './icons'
import { useConnection } from '../wire/connection'
import { Problem } from '../wire/api'
import { plainly } from './plainly'

interface ErrorStateProps {
  what: string // what failed: "The agents could not be listed."
  error: unknown
  retry?: () => void
  className?: string
}

export function why(error: unknown): string {
  return plainly(error instanceof Error ? error.message : String(error))
}

// ErrorState says what failed and why, and offers a retry. When the server can be reached again, it drops the message
// that it cannot.
export function ErrorState({ what, error, retry, className }: ErrorStateProps) {
  const { state } = useConnection()
  const back = error instanceof Problem && error.status === 0 && state === 'online'
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
          {back ? 'The connection was lost. It is back now.' : why(error)}
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
