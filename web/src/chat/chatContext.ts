import { createContext, useContext } from 'react'
import type { Plan } from './wire'
import type { Card } from './message'

// What messages need to know of the conversation they are in.
export interface ChatContext {
  session: string
  agent?: string // who answers, if nobody else is named
  mayMessage: boolean // who looks may say something, and decide
  cards: Card[] // open ones
  asked: ReadonlySet<string> // tools that a person is asked about
  plan?: Plan // as it is now
}

const context = createContext<ChatContext>({ session: '', mayMessage: false, cards: [], asked: new Set() })

export const ChatProvider = context.Provider

export function useChat(): ChatContext {
  return useContext(context)
}

// askedTools are the tools of approvals that wait.
export function askedTools(cards: Card[]): Set<string> {
  const names = cards.flatMap((card) =>
    card.questions.filter((q) => q.header === 'Permission').map((q) => /^Allow (\S+)\?/.exec(q.question)?.[1] ?? ''),
  )
  return new Set(names.filter((name) => name !== ''))
}
