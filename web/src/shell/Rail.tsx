import { Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Me } from '../wire/native.generated'
import {
  AgentsIcon,
  ApprovalsIcon,
  FilesIcon,
  BellIcon,
  KeyboardIcon,
  PlusIcon,
  RunsIcon,
  SearchIcon,
  SettingsIcon,
  ThemeIcon,
} from '../ui/icons'
import { Mark, Wordmark } from '../ui/Brand'
import { thumb } from '../ui/Button'
import { SessionList } from './SessionList'
import { written } from './shortcuts'
import type { useNotifying } from './notify'
import type { Theme } from './theme'
import { classes } from '../ui/classes'

export interface RailProps {
  me: Me
  waiting: number
  connection: ReactNode
  notifications: ReturnType<typeof useNotifying>
  theme: Theme
  setTheme: (theme: Theme) => void
  openPalette: () => void
  openHelp: () => void
  signOut: (() => void) | undefined
}

const bell = {
  on: 'Desktop notifications are on',
  off: 'Notify me when an answer is done or something waits for me',
  refused: 'This browser blocks notifications from this site',
}

const nextTheme: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }

export function Rail(props: RailProps) {
  const { me, waiting, connection, notifications, theme, setTheme, openPalette, openHelp, signOut } = props
  const navigate = useNavigate()
  const talks = me.permissions.includes('agents:message')
  return (
    <div className="flex h-full min-h-0 flex-col bg-raised">
      <div className="flex items-center justify-between px-3 pt-3 pb-2">
        <Link to="/" className="flex items-center rounded max-md:min-h-11">
          <Mark className="mr-2 size-5" />
          <Wordmark className="h-4.5 w-auto" />
          <span className="sr-only">Parley</span>
        </Link>
        <button
          className={classes(
            'flex items-center gap-1.5 rounded border',
            'border-line px-1.5 py-0.5 text-xs text-ink-soft hover:text-ink',
            'justify-center',
            thumb,
          )}
          aria-keyshortcuts="Control+K Meta+K"
          onClick={openPalette}
        >
          <SearchIcon className="size-4 shrink-0" />
          <span className="sr-only">Open the command palette</span>
          <kbd aria-hidden="true" className="font-sans max-md:hidden pointer-coarse:hidden">
            {written('mod+k').join(' ')}
          </kbd>
        </button>
      </div>
      {talks && (
        <button
          className={classes(
            'mx-2 mb-2 flex items-center gap-2 rounded border',
            'border-line-strong bg-paper px-2 py-1.5 text-sm hover:bg-sunken max-md:min-h-11',
          )}
          onClick={() => void navigate({ to: '/' })}
        >
          <PlusIcon className="size-4 shrink-0" /> New conversation
        </button>
      )}
      <SessionList editable={talks} />
      <nav aria-label="Pages" className="border-t border-line p-2 text-sm">
        <ul>
          <Page to="/agents" icon={<AgentsIcon className="size-4 shrink-0" />} name="Agents" />
          <Page to="/approvals" icon={<ApprovalsIcon className="size-4 shrink-0" />} name="Approvals" count={waiting} />
          <Page to="/runs" icon={<RunsIcon className="size-4 shrink-0" />} name="Runs" />
          <Page to="/files" icon={<FilesIcon className="size-4 shrink-0" />} name="Files" />
          <Page to="/settings" icon={<SettingsIcon className="size-4 shrink-0" />} name="Settings" />
        </ul>
      </nav>
      <div className="flex items-center gap-1 border-t border-line px-3 py-2 text-xs text-ink-soft">
        {connection}
        <span className="grow" />
        {notifications.notifying !== 'impossible' && (
          <button
            className={classes(
              'flex items-center justify-center rounded p-1 hover:text-ink',
              thumb,
              notifications.notifying === 'on' && 'text-accent',
            )}
            aria-label="Desktop notifications"
            aria-pressed={notifications.notifying === 'on'}
            title={bell[notifications.notifying]}
            disabled={notifications.notifying === 'refused'}
            onClick={notifications.toggle}
          >
            <BellIcon className="size-4 shrink-0" />
          </button>
        )}
        <button
          className={classes('flex items-center justify-center rounded p-1 hover:text-ink', thumb)}
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={openHelp}
        >
          <KeyboardIcon className="size-4 shrink-0" />
        </button>
        <button
          className={classes('flex items-center justify-center rounded p-1 hover:text-ink', thumb)}
          aria-label={`Theme: ${theme}. Change to ${nextTheme[theme]}`}
          title={`Theme: ${theme}`}
          onClick={() => setTheme(nextTheme[theme])}
        >
          <ThemeIcon className="size-4 shrink-0" />
        </button>
      </div>
      {me.auth !== 'local' && (
        <div className="flex items-center justify-between gap-2 border-t border-line px-3 py-2 text-xs text-ink-soft">
          <span className="min-w-0 truncate" title={`${me.user} of ${me.tenant}: ${me.roles.join(', ')}`}>
            <bdi>{me.user}</bdi> · {me.roles.join(', ') || 'no role'}
          </span>
          {signOut && (
            <button className={classes('shrink-0 rounded underline hover:text-ink', thumb)} onClick={signOut}>
              Sign out
            </button>
          )}
        </div>
      )}
    </div>
  )
}

function Page({
  to,
  icon,
  name,
  count = 0,
}: {
  to: '/agents' | '/approvals' | '/runs' | '/files' | '/settings'
  icon: ReactNode
  name: string
  count?: number
}) {
  return (
    <li>
      <Link
        to={to}
        className={classes('flex items-center gap-2 rounded px-1.5 py-1.5 hover:bg-sunken', thumb)}
        activeProps={{ className: 'bg-accent-soft', 'aria-current': 'page' }}
      >
        {icon}
        <span className="grow">{name}</span>
        {count > 0 && (
          <span className="rounded-full bg-waiting-soft px-1.5 text-xs font-medium text-waiting">
            {count > 99 ? '99+' : count}
            <span className="sr-only"> waiting</span>
          </span>
        )}
      </Link>
    </li>
  )
}
