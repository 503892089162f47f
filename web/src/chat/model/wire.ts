// What of the wire the chat uses.

import type { ContextUsage as Usage, Task as WholeTask } from '../../wire/bus.generated'
import type { UiMessage } from '../../wire/bus.generated'

export type {
  AskUser,
  FileChange,
  ModelFallback,
  Plan,
  PlanItem,
  Question,
  Queued,
  UiMessage,
} from '../../wire/bus.generated'

export type ContextUsage = Pick<Usage, 'message_count' | 'estimated_tokens' | 'token_limit' | 'compressed'>
export type Task = Pick<WholeTask, 'title' | 'user_stories' | 'acceptance_criteria'>

export interface History {
  messages: UiMessage[]
  cursor: string
  earlier: string | null
}
