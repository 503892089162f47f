import { useRouterState } from '@tanstack/react-router'
import { anchorOf } from '../chat/model/anchor'
import type { Passage } from '../wire/native.generated'

// A Target is a message that an address names. A user message is named by its anchor. A message from a search is named
// by a time: it is the last one of its side that began at that time or before.
export type Target = { anchor: string } | { role: 'user' | 'agent'; at: number /* milliseconds since 1970 */ }

// hashOf names the message of a passage in an address.
export function hashOf(passage: Pick<Passage, 'from' | 'at'>): string {
  return `${passage.from === 'person' ? 'user' : 'agent'}-${Date.parse(passage.at)}`
}

export function targetOf(hash: string): Target | undefined {
  const anchor = /^#?(m\d+)$/.exec(hash)?.[1]
  if (anchor !== undefined) return { anchor }
  const found = /^#?(user|agent)-(\d{1,16})$/.exec(hash)
  if (found === null) return undefined
  return { role: found[1] as 'user' | 'agent', at: Number(found[2]) }
}

type Anchored = Parameters<typeof anchorOf>[0]

interface Placed extends Anchored {
  role: string
  timestampMs?: number
}

// indexOf returns the index of the target among messages, oldest first. Undefined: it is earlier than all of them.
export function indexOf(messages: readonly Placed[], target: Target): number | undefined {
  const at =
    'anchor' in target
      ? messages.findIndex((m) => m.role === 'user' && anchorOf(m) === target.anchor)
      : messages.findLastIndex((m) => m.role === target.role && (m.timestampMs ?? Infinity) <= target.at + 1)
  return at < 0 ? undefined : at
}

// useTarget returns the message that the address names.
export function useTarget(): Target | undefined {
  const hash = useRouterState({ select: (s) => s.location.hash })
  return targetOf(hash)
}
