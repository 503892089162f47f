import { createContext, useContext } from 'react'
import type { ChangesUndone, Plan } from '../../wire/bus.generated'
import type { Card, ChatMessage } from '../model/message'
import type { Forks } from './useForks'

// What messages need from their conversation.
export interface ChatContext {
  session: string
  agent?: string // who answers, if nobody else is named
  mayMessage: boolean // who looks may say something, and decide
  cards: Card[] // open ones
  asked: ReadonlySet<string> // tools that a person is asked about
  plan?: Plan // as it is now
  undone: Readonly<Record<string, ChangesUndone>> // by run
  working: boolean // a run is
  forks?: Forks // none: nothing can be forked here
  link?: (message: ChatMessage) => void // copies the address of a message
  // again sends the last message once more. Its answer, which ended badly, is the message of the id after.
  again?: { after: string; send: () => Promise<void> }
}

const context = createContext<ChatContext>({ session: '', mayMessage: false, cards: [], asked: new Set(), undone: {}, working: false })

export const ChatProvider = context.Provider

export function useChat(): ChatContext {
  return useContext(context)
}
