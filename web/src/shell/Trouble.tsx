import { Link, type ErrorComponentProps } from '@tanstack/react-router'

// Trouble is shown in place of a page that failed, so that the rest stays.
export function Trouble({ error, reset }: ErrorComponentProps) {
  return (
    <div className="mx-auto max-w-lg p-8">
      <h1 className="mb-2 text-lg font-semibold">This page failed</h1>
      <p className="mb-4 text-ink-soft">{error instanceof Error ? error.message : String(error)}</p>
      <button className="rounded border border-line-strong px-3 py-1.5" onClick={reset}>
        Try again
      </button>
    </div>
  )
}

export function Lost() {
  return (
    <div className="mx-auto max-w-lg p-8">
      <h1 className="mb-2 text-lg font-semibold">Page not found</h1>
      <p className="mb-4 text-ink-soft">It may have been deleted, or it may belong to another user.</p>
      <Link to="/" className="text-accent underline">
        Start a conversation
      </Link>
    </div>
  )
}
