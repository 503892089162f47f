import type { ReactNode } from 'react'
import { classes } from './classes'

interface PageProps {
  title: ReactNode
  lead?: ReactNode // one line about the page
  actions?: ReactNode
  wide?: boolean
  children: ReactNode
}

// Page is the frame of every page except the chat; it stands inside the shell's main.
export function Page({ title, lead, actions, wide, children }: PageProps) {
  return (
    <div className={classes('mx-auto flex w-full flex-col gap-6 px-4 py-6 sm:px-6', wide ? 'max-w-6xl' : 'max-w-4xl')}>
      <header className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
        <div className="min-w-0">
          <h1 className="flex flex-wrap items-center gap-2 text-xl font-semibold">{title}</h1>
          {lead !== undefined && <p className="text-sm text-ink-soft">{lead}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-base font-semibold">{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  )
}

export function Box({ className, children }: { className?: string; children: ReactNode }) {
  return <div className={classes('rounded-lg border border-line bg-raised', className)}>{children}</div>
}

// Rows is a list of items with a line between them; Row is one of them, which wraps on narrow screens.
export function Rows({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul aria-label={label} className="overflow-hidden rounded-lg border border-line">
      {children}
    </ul>
  )
}

export function Row({ children }: { children: ReactNode }) {
  return (
    <li
      className={classes(
        'flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line bg-raised px-4 py-3 text-sm',
        'last:border-b-0',
      )}
    >
      {children}
    </li>
  )
}

// Facts are names with their values, one below the other on a phone.
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-1 gap-x-6 gap-y-1 text-sm sm:grid-cols-[auto_1fr] sm:gap-y-2">
      {facts.map(([name, what]) => (
        <div key={name} className="contents">
          <dt className="text-ink-soft">{name}</dt>
          <dd className="mb-2 min-w-0 break-words sm:mb-0">{what}</dd>
        </div>
      ))}
    </dl>
  )
}
