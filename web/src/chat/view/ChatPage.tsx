import { useParams } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { Spinner } from '../../ui/Spinner'
import { FirstRun } from './FirstRun'
import { loadPanel } from './preload'

const ChatPanel = lazy(() => loadPanel().then((module) => ({ default: module.ChatPanel })))

// ChatPage is a conversation, or the start page. The start page is the first page a visitor loads, so it comes without
// the code that only conversations need.
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
