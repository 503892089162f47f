import { useParams } from '@tanstack/react-router'
import { Spinner } from '../../ui/Spinner'
import { FirstRun } from './FirstRun'
import { panel } from './preload'

// ChatPage is a conversation, or the start page. The start page is the first page a visitor loads, so it comes without
// the code that only conversations need.
export function ChatPage() {
  const { session } = useParams({ strict: false })
  if (session === undefined) return <FirstRun />
  return (
    <panel.Late
      key={session}
      session={session}
      fallback={
        <div className="flex h-full items-center justify-center">
          <Spinner word="Loading the conversation" />
        </div>
      }
    />
  )
}
