import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useMemo, useRef } from 'react'
import { why } from '../../ui/ErrorState'
import { toast } from '../../ui/toast'
import { ask, Problem } from '../../wire/api'
import { readLog } from '../../wire/log'
import type { BranchPoint, Session } from '../../wire/native.generated'
import { newID } from '../../wire/uuid'
import { readDraft, writeDraft } from '../model/draft'
import { forkHead, forkOf, pointAfter, pointBefore, saidBefore, type Fork, type Point } from '../model/forks'
import type { ChatMessage } from '../model/message'
import { imagesOf } from './InputImage'

// The branches of a conversation that diverge before a message, and the index of the current one.
export interface Branches {
  sessions: string[]
  current: number // from 0
}

export interface Forks {
  fork: Fork | null // the source of this conversation
  branchesAt: (message: ChatMessage) => Branches | undefined
  regenerate: (answer: ChatMessage) => Promise<void>
  resend: (said: ChatMessage, text: string) => Promise<void>
  forkAfter: (answer: ChatMessage) => Promise<void>
}

const mostPoints = 40 // limit of the server for one request

// useForks returns the branches of a conversation, and creates new ones. The conversation itself does not change.
export function useForks(session: string, messages: ChatMessage[], loaded: boolean): Forks {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { data: fork = null } = useQuery({
    queryKey: ['fork', session],
    queryFn: async ({ signal }) => {
      const log = await readLog(session, { until: ({ seq }) => seq >= forkHead, signal })
      const forked = log.find((event) => event.type === 'SessionForked')
      const opened = log.find((event) => event.type === 'SessionOpened')
      return forked === undefined ? null : forkOf(forked.body, session, opened?.body.agent)
    },
    staleTime: Infinity,
    retry: false,
  })
  const points = useMemo(() => {
    const all = messages.flatMap((m) => (m.role === 'user' ? (pointBefore(m, session, fork) ?? []) : []))
    return all.slice(-mostPoints)
  }, [messages, session, fork])
  const places = points.map((p) => `${p.session}.${p.at}`).join(' ')
  const { data: found = [] } = useQuery({
    queryKey: ['branches', session, places],
    queryFn: ({ signal }) => branchesOf(points, signal),
    enabled: loaded && points.length > 0,
    placeholderData: keepPreviousData,
    retry: false,
  })

  const now = useRef({ messages, fork })
  useEffect(() => {
    now.current = { messages, fork }
  })
  const actions = useMemo(() => {
    // open forks a conversation. If its source was deleted, a fork with the same conversation serves as well.
    const open = async ({ session: source, at }: Point): Promise<Session> => {
      const request = (from: string, upto: number) =>
        ask<Session>('POST', `/api/v1/sessions/${from}/fork`, { body: { at: upto, branch: true }, once: newID() })
      try {
        return await request(source, at)
      } catch (error) {
        if (source === session || !(error instanceof Problem) || error.status !== 404) throw error
        return request(session, forkHead)
      }
    }
    const go = async (to: string) => {
      void queries.invalidateQueries({ queryKey: ['sessions'] })
      void queries.invalidateQueries({ queryKey: ['branches'] })
      await navigate({ to: '/chat/$session', params: { session: to } })
    }
    const resend = async (said: ChatMessage, text: string) => {
      const point = pointBefore(said, session, now.current.fork)
      if (point === undefined) return
      try {
        const images = await imagesOf(said)
        const made = await open(point)
        const { model } = readDraft(session)
        writeDraft(made.id, { text, model }) // if sending fails, the user can send it
        await ask('POST', '/api/chat', {
          body: { message: text, session_id: made.id, agent_id: said.to || undefined, model, images },
          once: newID(),
        }).then(
          () => writeDraft(made.id, { text: '', model }),
          (error: unknown) => toast(`The message was not sent. ${why(error)}`, 'failed'),
        )
        await go(made.id)
      } catch (error) {
        toast(`The conversation was not forked. ${why(error)}`, 'failed')
      }
    }
    return {
      resend,
      regenerate: async (answer: ChatMessage) => {
        const said = saidBefore(now.current.messages, answer)
        if (said !== undefined) await resend(said, said.text)
      },
      forkAfter: async (answer: ChatMessage) => {
        try {
          const { messages: all } = now.current
          const made = await open(pointAfter(all, answer, session) ?? { session, at: 0 })
          await go(made.id)
        } catch (error) {
          toast(`The conversation was not forked. ${why(error)}`, 'failed')
        }
      },
    }
  }, [session, queries, navigate])

  return useMemo(() => {
    const branchesAt = (message: ChatMessage): Branches | undefined => {
      const point = pointBefore(message, session, fork)
      const here = found.find((p) => p.at === point?.at && p.sessions[0] === point.session)
      const current = here?.sessions.indexOf(session) ?? -1
      return here === undefined || current < 0 ? undefined : { sessions: here.sessions, current }
    }
    return { fork, branchesAt, ...actions }
  }, [fork, found, session, actions])
}

// branchesOf requests the branches at some points of all conversations at once. A deleted conversation has none.
async function branchesOf(points: Point[], signal: AbortSignal): Promise<BranchPoint[]> {
  const sessions = [...new Set(points.map((p) => p.session))]
  const lists = await Promise.all(
    sessions.map(async (id) => {
      const at = points.filter((p) => p.session === id).map((p) => p.at)
      try {
        const path = `/api/v1/sessions/${id}/branches?at=${at.join(',')}`
        return (await ask<{ branches: BranchPoint[] }>('GET', path, { signal })).branches
      } catch (error) {
        if (error instanceof Problem && error.status === 404) return []
        throw error
      }
    }),
  )
  return lists.flat()
}
