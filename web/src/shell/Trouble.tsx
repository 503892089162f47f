import { Link, type ErrorComponentProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button, buttonLook } from '../ui/Button'
import { Mark } from '../ui/Brand'

// Trouble is shown in place of a page that failed, so that the rest stays.
export function Trouble({ error, reset }: ErrorComponentProps) {
  return (
    <Instead title="This page failed" action={<Button onClick={reset}>Try again</Button>}>
      {error instanceof Error ? error.message : String(error)}
    </Instead>
  )
}

// Lost is shown at an address without a page.
export function Lost() {
  return (
    <Instead
      title="Page not found"
      action={
        <Link to="/" className={buttonLook('primary')}>
          Start a conversation
        </Link>
      }
    >
      There is nothing at this address. The page may have been deleted, or it may belong to another user.
    </Instead>
  )
}

function Instead({ title, action, children }: { title: string; action: ReactNode; children: ReactNode }) {
  return (
    <div className="flex min-h-full flex-col items-center justify-center gap-2 px-6 py-12 text-center">
      <Mark className="mb-2 size-10 opacity-80" />
      <h1 className="text-lg font-semibold">{title}</h1>
      <p className="max-w-md break-words text-sm text-ink-soft">{children}</p>
      <div className="mt-3">{action}</div>
    </div>
  )
}
