import { createContext, useContext } from 'react'
import type { ChangesUndone, Plan } from '../../wire/bus.generated'
import type { Card, ChatMessage } from '../model/message'
import type { Forks } from './useForks'

// The state of the conversation that messages need.
export interface ChatContext {
  session: string
  project?: string // none: the first
  agent?: string // the agent that answers by default
  mayMessage: boolean // the user may send messages and decide cards
  cards: Card[] // open cards
  asked: ReadonlySet<string> // tools of open approvals
  plan?: Plan // in its current state
  undone: Readonly<Record<string, ChangesUndone>> // results of undo, by run
  working: boolean // a run is active
  forks?: Forks // none: forks are not possible here
  link?: (message: ChatMessage) => void // copies the address of a message
  // again sends the last message once more. Its answer, which ended badly, is the message of the id after.
  again?: { after: string; send: () => Promise<void> }
}

const context = createContext<ChatContext>({ session: '', mayMessage: false, cards: [], asked: new Set(), undone: {}, working: false })

export const ChatProvider = context.Provider

export function useChat(): ChatContext {
  return useContext(context)
}
