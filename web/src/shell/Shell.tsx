import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { Dialog } from 'radix-ui'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { Mark, Wordmark } from '../ui/Brand'
import { thumb } from '../ui/Button'
import { Toaster } from '../ui/Toaster'
import { byCookie, onRefused, Problem } from '../wire/api'
import { useBus } from '../wire/bus'
import { useConnection } from '../wire/connection'
import { useMe } from '../wire/me'
import type { Me } from '../wire/native.generated'
import { CrossIcon, MenuIcon } from '../ui/icons'
import { Offline, Online } from './Offline'
import { Rail, type RailProps } from './Rail'
import { onSignInElsewhere, signOut } from '../sign-in/session'
import { SignIn } from '../sign-in/SignIn'
import { useNotifications, useNotifying } from './notify'
import { sessionsKey, titleOf, useMark, useSessions } from './sessions'
import { listen, useShortcuts } from './shortcuts'
import { useTheme } from './theme'
import { pageName, useTitle } from './titles'
import { useWaiting, waitingKey } from './waiting'
import { classes } from '../ui/classes'

const Palette = lazy(() => import('./Palette').then((m) => ({ default: m.Palette })))
const Help = lazy(() => import('./Help').then((m) => ({ default: m.Help })))

// Shell is the frame around all pages. Without a signed-in user it shows the sign-in page, at the same address.
export function Shell() {
  const queries = useQueryClient()
  const { query: me } = useMe()
  useEffect(
    () =>
      onRefused(() => {
        // After a refusal the user is loaded again, unless that request was the refused one.
        const known = queries.getQueryState(['me'])
        if (known?.status === 'success' && known.fetchStatus === 'idle')
          void queries.invalidateQueries({ queryKey: ['me'] })
      }),
    [queries],
  )
  useEffect(() => onSignInElsewhere(() => void queries.invalidateQueries({ queryKey: ['me'] })), [queries])
  if (me.error instanceof Problem && me.error.status === 401) return <SignIn />
  if (me.data !== undefined) {
    byCookie(me.data.auth !== 'local') // before anything below opens a socket
    return <Frame me={me.data} />
  }
  return (
    <main className="mx-auto max-w-lg p-8">
      {me.isPending ? (
        <p className="text-ink-soft">Loading…</p>
      ) : (
        <div role="alert">
          <h1 className="mb-2 text-lg font-semibold">Parley cannot be reached</h1>
          <p className="mb-4 text-ink-soft">{me.error?.message}</p>
          <button className="rounded border border-line-strong px-3 py-1.5" onClick={() => void me.refetch()}>
            Try again
          </button>
        </div>
      )}
    </main>
  )
}

function Frame({ me }: { me: Me }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const path = useRouterState({ select: (s) => s.location.pathname })
  const [open, setOpen] = useState<'nothing' | 'palette' | 'help' | 'drawer'>('nothing')
  const [theme, setTheme] = useTheme()
  const connection = useConnection()
  const waiting = useWaiting()
  const sessions = useSessions('', 50).data?.sessions ?? []
  const name = pageName(path, sessions)
  useTitle(name, waiting)
  useRead(path)
  const notifications = useNotifying()
  useNotifications(
    (id) => {
      const session = sessions.find((s) => s.id === id)
      return session && titleOf(session)
    },
    (id) => void navigate({ to: '/chat/$session', params: { session: id } }),
  )
  useEffect(() => listen(document), [])
  useEffect(() => setOpen('nothing'), [path])
  useBus(['message', 'run', 'ask_user', 'widget_resolved'], () => stale(queries))

  const step = (by: 1 | -1) => {
    const current = sessions.findIndex((s) => path === `/chat/${s.id}`)
    const next = sessions[current < 0 && by < 0 ? 0 : current + by]
    if (next !== undefined) void navigate({ to: '/chat/$session', params: { session: next.id } })
  }
  useShortcuts([
    { keys: 'mod+k', what: 'Open the command palette', group: 'Everywhere', run: () => setOpen('palette') },
    { keys: '?', what: 'List the shortcuts', group: 'Everywhere', run: () => setOpen('help') },
    { keys: 'g a', what: 'Go to agents', group: 'Everywhere', run: () => void navigate({ to: '/agents' }) },
    {
      keys: 'g w',
      what: 'Go to approvals',
      group: 'Everywhere',
      run: () => void navigate({ to: '/approvals' }),
    },
    { keys: 'g r', what: 'Go to runs', group: 'Everywhere', run: () => void navigate({ to: '/runs' }) },
    { keys: 'g s', what: 'Go to settings', group: 'Everywhere', run: () => void navigate({ to: '/settings' }) },
    { keys: 'c', what: 'New conversation', group: 'Conversations', run: () => void navigate({ to: '/' }) },
    { keys: 'j', what: 'Next conversation in the list', group: 'Conversations', run: () => step(1) },
    { keys: 'k', what: 'Previous conversation in the list', group: 'Conversations', run: () => step(-1) },
  ])

  const rail: RailProps = {
    me,
    waiting,
    connection: <Online connection={connection} />,
    notifications,
    theme,
    setTheme,
    openPalette: () => setOpen('palette'),
    openHelp: () => setOpen('help'),
    signOut: me.auth === 'local' ? undefined : () => void signOut().finally(() => location.assign('/')),
  }
  const actions = useMemo(
    () => [
      { name: 'Light theme', run: () => setTheme('light') },
      { name: 'Dark theme', run: () => setTheme('dark') },
      { name: 'System theme', run: () => setTheme('system') },
      { name: 'Keyboard shortcuts', run: () => setOpen('help') },
    ],
    [setTheme],
  )
  return (
    <div className="flex h-full">
      <a
        href="#main"
        className={classes(
          'sr-only z-50 rounded bg-accent px-3 py-2 text-accent-ink',
          'focus:not-sr-only focus:absolute focus:top-2 focus:left-2',
        )}
      >
        Skip to the main content
      </a>
      <header className="hidden w-64 shrink-0 border-r border-line md:block">
        <Rail {...rail} />
      </header>
      <div className="flex min-w-0 grow flex-col">
        <Offline connection={connection} />
        <div className="relative flex min-h-0 grow flex-col">
          {/* The header of a conversation leaves room for the menu: a phone has one header. */}
          <div
            className={classes(
              'flex items-center gap-1 md:hidden',
              path.startsWith('/chat/') ? 'absolute top-0.5 left-1 z-20' : 'h-12 shrink-0 border-b border-line px-1',
            )}
          >
            <button
              aria-label={waiting > 0 ? `Menu, ${waiting} waiting` : 'Menu'}
              className={classes('relative flex items-center justify-center rounded', thumb)}
              onClick={() => setOpen('drawer')}
            >
              <MenuIcon className="size-4 shrink-0" />
              {waiting > 0 && (
                <span aria-hidden="true" className="absolute top-2.5 right-2.5 size-2 rounded-full bg-waiting" />
              )}
            </button>
            {!path.startsWith('/chat/') && (
              <span className="flex items-center gap-2">
                <Mark className="size-5" /> <Wordmark className="h-4.5 w-auto" />
                <span className="sr-only">Parley</span>
              </span>
            )}
          </div>
          <main id="main" tabIndex={-1} className="relative min-h-0 grow overflow-y-auto outline-none">
            <Outlet />
          </main>
        </div>
      </div>
      <Toaster />
      <Arrival name={name} path={path} />
      {open === 'drawer' && <Drawer rail={rail} close={() => setOpen('nothing')} />}
      <Suspense>
        {open === 'palette' && <Palette me={me} actions={actions} close={() => setOpen('nothing')} />}
        {open === 'help' && <Help close={() => setOpen('nothing')} />}
      </Suspense>
    </div>
  )
}

// useRead records that the user has seen the conversation in view: when it is opened, when the tab becomes visible, and
// when an answer ends in a visible tab.
function useRead(path: string): void {
  const session = /^\/chat\/([0-9a-f-]{36})$/.exec(path)?.[1]
  const { mutate } = useMark()
  // The page below has loaded it: an address may name a conversation that does not exist, or not yet.
  const found = useQuery({ queryKey: ['session', session], enabled: false }).data !== undefined
  const read = () => {
    if (session !== undefined && found && document.visibilityState === 'visible') mutate({ id: session, read: true })
  }
  const latest = useRef(read)
  useEffect(() => {
    latest.current = read
  })
  useEffect(() => void latest.current(), [session, found])
  useEffect(() => {
    const turn = () => latest.current()
    document.addEventListener('visibilitychange', turn)
    return () => document.removeEventListener('visibilitychange', turn)
  }, [])
  useBus(['run'], (message) => {
    if (message.phase === 'outcome' && message.session_id === session) read()
  })
}

let staleSoon: ReturnType<typeof setTimeout> | undefined

// stale reloads the lists, once for all events of a moment.
function stale(queries: QueryClient): void {
  if (staleSoon !== undefined) return
  staleSoon = setTimeout(() => {
    staleSoon = undefined
    for (const queryKey of [sessionsKey, waitingKey]) void queries.invalidateQueries({ queryKey })
  }, 250)
}

// Arrival announces a new page to screen readers.
function Arrival({ name, path }: { name: string; path: string }) {
  const first = useRef(path)
  const [said, setSaid] = useState('')
  useEffect(() => {
    if (path === first.current) return
    first.current = ''
    setSaid(name)
  }, [name, path])
  return (
    <p aria-live="polite" className="sr-only">
      {said}
    </p>
  )
}

// Drawer is the rail on a phone.
function Drawer({ rail, close }: { rail: RailProps; close: () => void }) {
  return (
    <Dialog.Root open onOpenChange={(open) => !open && close()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-30 bg-black/40 md:hidden" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed inset-y-0 left-0 z-40 w-[min(20rem,85vw)] border-r border-line bg-raised shadow-xl md:hidden"
        >
          <Dialog.Title className="sr-only">Menu</Dialog.Title>
          <Rail {...rail} />
          <Dialog.Close
            aria-label="Close the menu"
            className={classes('absolute top-2 -right-12 flex items-center justify-center rounded bg-raised', thumb)}
          >
            <CrossIcon className="size-4 shrink-0" />
          </Dialog.Close>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
