import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { ask, Problem } from '../../wire/api'
import { useConnection } from '../../wire/connection'
import { useMe } from '../../wire/me'
import { Button, IconButton } from '../../ui/Button'
import { DeleteConversation } from '../../shell/DeleteConversation'
import { titleOf } from '../../shell/sessions'
import { EmptyState } from '../../ui/EmptyState'
import { ErrorState, why } from '../../ui/ErrorState'
import { CrossIcon } from '../../ui/icons'
import { Spinner } from '../../ui/Spinner'
import { useShortcuts } from '../../shell/shortcuts'
import { toast } from '../../ui/toast'
import { askedTools, openQuestion } from '../model/approval'
import { ChatProvider } from './chatContext'
import { ChatHeader } from './ChatHeader'
import { current, type ChatState } from '../model/chatReducer'
import { anchorOf, whoReads } from '../model/anchor'
import type { Fork } from '../model/forks'
import type { ChatMessage } from '../model/message'
import { imagesOf } from './InputImage'
import { useForks } from './useForks'
import { exportChat } from './exportChat'
import { announcement, repeatable } from '../model/ending'
import { Composer } from './Composer'
import { ContextMeter } from './ContextMeter'
import { Inspector } from './Inspector'
import { MessageList } from './MessageList'
import { markdown } from './preload'
import { runsKey, sessionKey, useAgents, useRuns, useSession } from './queries'
import { useChatMessages } from './useChatMessages'
import type { Connection } from './useSseConnection'
import { useInspecting } from './useInspecting'
import type { UiMessage } from '../../wire/bus.generated'
import { newID } from '../../wire/uuid'
import { dollars } from '../../ui/amounts'
import { classes } from '../../ui/classes'

// ChatPanel is one conversation: its messages, its open cards, the composer, and beside them the run details.
export function ChatPanel({ session }: { session: string }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { may, me } = useMe()
  const onMessage = useCallback(
    (message: UiMessage) => {
      if (message.kind !== 'run') return
      if (message.phase === 'sync') void queries.invalidateQueries({ queryKey: sessionKey(session) })
      if (message.phase === 'outcome' || message.phase === 'context_usage')
        void queries.invalidateQueries({ queryKey: runsKey(session) })
      if (message.phase === 'outcome') void queries.invalidateQueries({ queryKey: sessionKey(session) })
    },
    [queries, session],
  )
  const { state, connection, loadEarlier, earlier } = useChatMessages(session, onMessage)
  const { data: info, error: infoError } = useSession(session)
  const { data: agents = [] } = useAgents(info?.project)
  const { data: runs = [] } = useRuns(session, state.loaded)
  const [inspecting, setInspecting] = useInspecting()
  const [clearing, setClearing] = useState(false)
  const [sent, setSent] = useState(0)
  useEffect(() => void markdown.load(), [])

  const mayMessage = may('agents:message')
  const running = current(state) >= 0
  const said = useMemo(() => state.messages.filter((m) => m.role === 'user').map((m) => m.text), [state.messages])
  const agent = info?.agent || agents[0]?.id
  const answered = useMemo(() => state.messages.findLast((m) => m.model !== undefined), [state.messages])
  const failed = mayMessage && info?.status !== 'halted' ? repeatable(state) : undefined
  const again = useMemo(
    () =>
      failed && {
        after: failed.answer.id,
        send: async () => {
          const { text, to } = failed.said
          try {
            const images = await imagesOf(failed.said)
            await ask('POST', '/api/chat', {
              body: { message: text, session_id: session, agent_id: to || undefined, images },
              once: newID(),
            })
            setSent((n) => n + 1)
          } catch (error) {
            toast(`Your message was not sent again. ${why(error)}`, 'failed')
          }
        },
      },
    [failed?.answer.id, failed?.said.id, session],
  )
  const forks = useForks(session, state.messages, state.loaded)
  const messages = useMemo(() => withFork(state, forks.fork), [state, forks.fork])
  const link = useCallback(
    async (message?: ChatMessage) => {
      const anchor = message && anchorOf(message)
      const address = `${location.origin}/chat/${session}`
      try {
        await navigator.clipboard.writeText(anchor === undefined ? address : `${address}#${anchor}`)
        toast(`The link is copied. ${whoReads(me?.auth)}`)
      } catch {
        toast('The browser did not allow copying.', 'failed')
      }
    },
    [session, me?.auth],
  )
  const context = useMemo(
    () => ({
      session,
      project: info?.project,
      agent,
      mayMessage,
      cards: state.cards,
      asked: askedTools(state.cards),
      plan: state.plan,
      undone: state.undone,
      working: running,
      again,
      forks,
      link: (message: ChatMessage) => void link(message),
    }),
    [session, info?.project, agent, mayMessage, state.cards, state.plan, state.undone, running, again, forks, link],
  )
  const cost = runs.reduce((sum, run) => sum + (run.usage?.cost_micros ?? 0), 0)

  const stop = useCallback(async () => {
    try {
      await ask('POST', `/api/v1/sessions/${session}/cancel`, { body: {} })
    } catch (error) {
      toast(`The run was not stopped. ${why(error)}`, 'failed')
    }
  }, [session])
  useTwice(running && mayMessage, stop)
  useShortcuts([
    { keys: '/', what: 'Type a command', run: (event) => compose(event, '/') },
    { keys: 'm', what: 'Write a message', run: (event) => compose(event, '') },
    {
      keys: 'w',
      what: 'Go to the request that waits for you',
      run: () => document.querySelector<HTMLElement>('[data-card]')?.focus(),
    },
    { keys: 'i', what: 'Show or hide run details', run: () => setInspecting(!inspecting) },
    { keys: 'Escape Escape', what: 'Stop the run' },
    { keys: 'Enter', what: 'Allow once, on the focused card' },
    { keys: 'Backspace', what: 'Deny, on the focused card' },
  ])

  const compact = async () => {
    try {
      await ask('POST', `/api/v1/sessions/${session}/compact`, { body: {} })
      toast('The context is being compacted.')
    } catch (error) {
      toast(`The context was not compacted. ${why(error)}`, 'failed')
    }
  }
  const clear = async () => {
    await ask('POST', '/api/chat/clear', { body: { session_id: session } })
    await queries.invalidateQueries({ queryKey: ['sessions'] })
    await navigate({ to: '/' })
  }

  const gone =
    (connection.problem?.status === 404 && connection.status === 'failed') ||
    (infoError instanceof Problem && infoError.status === 404)
  if (gone)
    return (
      <div className="flex h-full flex-col justify-center">
        <EmptyState
          title="Conversation not found"
          action={
            <Button kind="primary" onClick={() => void navigate({ to: '/' })}>
              Start a new conversation
            </Button>
          }
        >
          It was deleted, or it belongs to another user.
        </EmptyState>
      </div>
    )

  return (
    <ChatProvider value={context}>
      <div className="relative flex h-full min-h-0">
        <section aria-label="Chat" className="flex min-w-0 grow flex-col">
          <ChatHeader
            title={info?.title || 'Conversation'}
            agent={agent}
            model={answered?.model ?? agents.find((each) => each.id === agent)?.model ?? me?.model}
            status={
              running
                ? state.cards.length > 0
                  ? 'waiting'
                  : 'running'
                : info?.status === 'halted'
                  ? 'halted'
                  : undefined
            }
            mayMessage={mayMessage}
            inspecting={inspecting}
            onInspect={() => setInspecting(!inspecting)}
            onCompact={() => void compact()}
            onLink={() => void link()}
            onExport={(as) => void exportChat(session, as)}
            onClear={() => setClearing(true)}
          />
          <Trouble connection={connection} loaded={state.loaded} />
          {info?.status === 'halted' && <Halted session={session} mayReopen={mayMessage} />}
          <p aria-live="polite" className="sr-only">
            {state.loaded && announcement(state, agent ?? 'The agent', running)}
          </p>
          {state.loaded ? (
            messages.length === 0 && state.cards.length === 0 ? (
              <div className="flex grow items-center">
                <EmptyState title="No messages yet">
                  Send a message below. {agent ?? 'The agent'} answers here.
                </EmptyState>
              </div>
            ) : (
              <MessageList
                messages={messages}
                cards={state.cards}
                waiting={state.waiting}
                more={state.earlier !== null}
                earlier={earlier}
                onEarlier={loadEarlier}
                sent={sent}
              />
            )
          ) : (
            <div className="flex grow items-center justify-center">
              {connection.status !== 'failed' && <Spinner word="Loading the conversation" />}
            </div>
          )}
          {info?.status === 'halted' ? (
            <p className="border-t border-line px-6 py-4 text-center text-sm text-ink-soft">
              This conversation is halted. Reopen it to write.
            </p>
          ) : mayMessage ? (
            <Composer
              session={session}
              project={info?.project}
              agent={agent}
              running={running}
              said={said}
              focus={state.loaded}
              question={openQuestion(state.cards)}
              meter={
                <span className="flex items-center gap-2">
                  {state.context !== undefined && (
                    <span className="hidden @lg:block">
                      <ContextMeter usage={state.context} />
                    </span>
                  )}
                  {cost > 0 && (
                    <span className="hidden text-xs text-ink-soft tabular-nums @md:inline">{dollars(cost)}</span>
                  )}
                </span>
              }
              onSent={() => setSent((n) => n + 1)}
              onStop={stop}
              onClear={() => setClearing(true)}
              onCompact={() => void compact()}
            />
          ) : (
            me !== undefined && (
              <p className="border-t border-line px-6 py-4 text-center text-sm text-ink-soft">
                Your role can read conversations, but cannot send messages.
              </p>
            )
          )}
        </section>
        {inspecting && (
          <>
            <button
              type="button"
              aria-label="Hide run details"
              className="absolute inset-0 z-20 bg-black/30 lg:hidden"
              onClick={() => setInspecting(false)}
            />
            <aside
              aria-label="Run details"
              className={classes(
                'z-20 w-72 shrink-0 overflow-y-auto border-l border-line bg-raised',
                'max-lg:absolute max-lg:inset-y-0 max-lg:right-0 max-lg:shadow-xl',
              )}
            >
              <div className="flex justify-end px-2 pt-2 lg:hidden">
                <IconButton small label="Hide run details" onClick={() => setInspecting(false)}>
                  <CrossIcon />
                </IconButton>
              </div>
              <Inspector state={state} />
            </aside>
          </>
        )}
        {clearing && (
          <DeleteConversation
            title={info === undefined ? 'Conversation' : titleOf(info)}
            act={clear}
            onClose={() => setClearing(false)}
          />
        )}
      </div>
    </ChatProvider>
  )
}

// withFork puts the messages of a fork's source before its own, after all of its own are loaded.
function withFork(state: ChatState, fork: Fork | null): ChatMessage[] {
  if (fork === null || state.earlier !== null) return state.messages
  const mark: ChatMessage = {
    id: 'fork',
    role: 'agent',
    session: state.session,
    text: '',
    timestamp: '',
    forkedFrom: fork.source,
  }
  return [...fork.messages, mark, ...state.messages]
}

// Halted: the server has stopped the conversation. The last message gives the
// reason.
function Halted({ session, mayReopen }: { session: string; mayReopen: boolean }) {
  const queries = useQueryClient()
  const reopen = async () => {
    try {
      await ask('POST', `/api/v1/sessions/${session}/reopen`, { body: {} })
      await queries.invalidateQueries({ queryKey: sessionKey(session) })
    } catch (error) {
      toast(`The conversation was not reopened. ${why(error)}`, 'failed')
    }
  }
  return (
    <div
      role="alert"
      className={classes(
        'flex flex-wrap items-center justify-center gap-3',
        'border-b border-failed bg-failed-soft px-4 py-1.5 text-sm',
      )}
    >
      <span>
        <b className="font-semibold">Halted.</b> No run starts until the conversation is reopened.
      </span>
      {mayReopen && (
        <Button small onClick={() => void reopen()}>
          Reopen
        </Button>
      )}
    </div>
  )
}

// Trouble is shown here only if it concerns this conversation alone: if the
// server is unreachable, the shell says so.
function Trouble({ connection, loaded }: { connection: Connection; loaded: boolean }) {
  const { state } = useConnection()
  if (connection.status === 'failed')
    return (
      <ErrorState
        className="m-4"
        what="The conversation cannot be loaded."
        error={connection.problem}
        retry={connection.retry}
      />
    )
  if (connection.status !== 'reconnecting' || !loaded || state !== 'online') return null
  return (
    <div
      role="status"
      className="flex items-center justify-center gap-3 border-b border-line bg-waiting-soft px-4 py-1.5 text-sm"
    >
      The connection is lost. Parley reconnects by itself, and then shows what you missed.
      <Button small onClick={connection.retry}>
        Try now
      </Button>
    </div>
  )
}

// compose focuses the composer, and inserts a prefix if it is empty.
function compose(event: KeyboardEvent, begin: string): void {
  const area = document.querySelector<HTMLTextAreaElement>('textarea[data-composer]')
  if (area === null) return
  event.preventDefault()
  area.focus()
  if (begin !== '' && area.value === '') document.execCommand('insertText', false, begin)
}

const within = 800 // milliseconds

// useTwice stops the run on the second Esc: the first closes an open menu or dialog, or may be a slip.
function useTwice(enabled: boolean, stop: () => Promise<void>): void {
  useEffect(() => {
    if (!enabled) return
    let last = 0
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('[role="dialog"]') !== null) return
      if (event.timeStamp - last < within) void stop()
      else toast('Press Esc again to stop the run.', 'hint', within)
      last = event.timeStamp
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  }, [enabled, stop])
}
