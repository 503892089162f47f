import type { ReactNode } from 'react'

interface EmptyStateProps {
  title: string
  children?: ReactNode // what will be shown here, and how to create it
  action?: ReactNode // one button
}

export function EmptyState({ title, children, action }: EmptyStateProps) {
  return (
    <div className="mx-auto flex max-w-md flex-col items-center gap-2 px-6 py-12 text-center">
      <h2 className="text-base font-semibold">{title}</h2>
      {children !== undefined && <div className="text-sm text-ink-soft">{children}</div>}
      {action !== undefined && <div className="mt-2 text-sm">{action}</div>}
    </div>
  )
}
