import { useParams } from '@tanstack/react-router'
import { ChatPanel } from './ChatPanel'
import { FirstRun } from './FirstRun'

export function ChatPage() {
  const { session } = useParams({ strict: false })
  return session === undefined ? <FirstRun /> : <ChatPanel key={session} session={session} />
}
