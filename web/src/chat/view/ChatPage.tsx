import { useParams } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { Spinner } from '../../ui/Spinner'
import { FirstRun } from './FirstRun'
import { loadPanel } from './preload'

const ChatPanel = lazy(() => loadPanel().then((module) => ({ default: module.ChatPanel })))

// ChatPage is a conversation, or the page before there is one. That page is the
// first somebody sees, and comes without what only a conversation needs.
export function ChatPage() {
  const { session } = useParams({ strict: false })
  if (session === undefined) return <FirstRun />
  return (
    <Suspense
      fallback={
        <div className="flex h-full items-center justify-center">
          <Spinner word="Loading the conversation" />
        </div>
      }
    >
      <ChatPanel key={session} session={session} />
    </Suspense>
  )
}
