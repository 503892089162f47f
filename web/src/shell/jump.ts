import { useRouterState } from '@tanstack/react-router'
import type { Passage } from '../wire/native.generated'

// A Target is a message that a search has found: the last one of its side that began at that time or before.
export interface Target {
  role: 'user' | 'agent'
  at: number // milliseconds since 1970
}

// hashOf names the message of a passage in an address.
export function hashOf(passage: Pick<Passage, 'from' | 'at'>): string {
  return `${passage.from === 'person' ? 'user' : 'agent'}-${Date.parse(passage.at)}`
}

export function targetOf(hash: string): Target | undefined {
  const found = /^#?(user|agent)-(\d{1,16})$/.exec(hash)
  if (found === null) return undefined
  return { role: found[1] as Target['role'], at: Number(found[2]) }
}

interface Placed {
  role: string
  timestampMs?: number
}

// indexOf is the place of the target among messages, oldest first. Undefined: it is earlier than all of them.
export function indexOf(messages: readonly Placed[], target: Target): number | undefined {
  const at = messages.findLastIndex((m) => m.role === target.role && (m.timestampMs ?? Infinity) <= target.at + 1)
  return at < 0 ? undefined : at
}

// useTarget is the message that the address names.
export function useTarget(): Target | undefined {
  const hash = useRouterState({ select: (s) => s.location.hash })
  return targetOf(hash)
}
