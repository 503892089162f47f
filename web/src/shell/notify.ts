import { useCallback, useState } from 'react'
import { useBus } from '../wire/bus'
import type { UiMessage } from '../wire/bus.generated'

// Desktop notifications: a card waits for the user, or a run has ended, while the tab is not visible. The browser asks
// the user only when they press the button.

const key = 'parley.notifications'

type Notifying = 'on' | 'off' | 'refused' | 'impossible'

function now(): Notifying {
  if (typeof Notification === 'undefined') return 'impossible'
  if (Notification.permission === 'denied') return 'refused'
  return Notification.permission === 'granted' && localStorage.getItem(key) === 'on' ? 'on' : 'off'
}

// useNotifying returns whether notifications are on, and a function to change that.
export function useNotifying(): { notifying: Notifying; toggle: () => void } {
  const [notifying, set] = useState(now)
  const toggle = useCallback(() => {
    if (now() === 'on') {
      localStorage.setItem(key, 'off')
      return set('off')
    }
    void Notification.requestPermission().then((answer) => {
      if (answer === 'granted') localStorage.setItem(key, 'on')
      set(now())
    })
  }, [])
  return { notifying, toggle }
}

// useNotifications notifies the user while the tab is hidden. titleOf names a conversation, open shows it.
export function useNotifications(titleOf: (session: string) => string | undefined, open: (session: string) => void) {
  useBus(['run', 'ask_user'], (message) => {
    const news = newsOf(message)
    if (news === undefined || document.visibilityState === 'visible' || now() !== 'on') return
    const session = message.session_id ?? ''
    // A later notification of the same conversation replaces it, from any tab.
    const shown = new Notification(news, { body: titleOf(session) ?? 'A conversation', tag: `parley ${session}` })
    shown.onclick = () => {
      window.focus()
      if (session !== '') open(session)
      shown.close()
    }
  })
}

// newsOf returns the text of the notification for a message of the bus, if any.
export function newsOf(message: UiMessage): string | undefined {
  const agent = message.agent_id || 'The agent'
  if (message.kind === 'ask_user') return `${agent} waits for you`
  if (message.kind !== 'run' || message.phase !== 'outcome') return undefined
  const { type, run_status } = outcomeOf(message.data)
  if (run_status === 'cancelled') return undefined // a user cancelled it
  if (type === 'plan' && run_status === 'completed') return `${agent} proposes a plan`
  return run_status === 'completed' ? `${agent} has finished` : `${agent} did not finish`
}

function outcomeOf(data: unknown): { type?: unknown; run_status?: unknown } {
  const outcome = (data as { outcome?: unknown } | undefined)?.outcome
  return typeof outcome === 'object' && outcome !== null ? outcome : {}
}
