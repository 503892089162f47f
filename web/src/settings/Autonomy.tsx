import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { ProjectPicker } from '../files/ProjectPicker'
import { Button } from '../ui/Button'
import { Exact, Mono } from '../ui/Mono'
import { Section } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { StatusBadge } from '../ui/StatusBadge'
import { useBus } from '../wire/bus'
import { useMe } from '../wire/me'
import type { Effect, Timer } from '../wire/native.generated'
import { Fetched, useAct } from './Fetched'
import { Mission } from './Mission'
import { Overrides } from './Overrides'
import { classes } from '../ui/classes'

// Autonomy: the mission, follow-ups that agents have scheduled, and outgoing deliveries. A server without these
// features answers 404, and the page says so.

export function Autonomy() {
  const queries = useQueryClient()
  const [project, setProject] = useState('') // of the mission and the idle prompts
  useBus(['run'], () => void queries.invalidateQueries({ queryKey: ['autonomy'] }))
  return (
    <>
      <ProjectPicker project={project} onChoose={setProject} />
      <Section title="Mission">
        <Mission key={project} project={project} />
      </Section>
      <Section title="Idle prompts">
        <Overrides key={project} project={project} />
      </Section>
      <Section title="Follow-ups">
        <Timers />
      </Section>
      <Section title="Deliveries">
        <Effects />
      </Section>
    </>
  )
}

function Timers() {
  const { may } = useMe()
  const cancel = useAct('DELETE', 'The follow-up was cancelled.')
  return (
    <Fetched<{ timers: Timer[] }> path="/api/v1/timers?limit=50" name="follow-ups">
      {({ timers }) =>
        timers.length === 0 ? (
          <p className="text-sm text-ink-soft">No follow-ups. When an agent schedules one, it appears here.</p>
        ) : (
          <Lines>
            {timers.map((timer) => (
              <Line
                key={timer.id}
                status={
                  <StatusBadge
                    status={timer.status === 'pending' ? 'waiting' : timer.status === 'promoted' ? 'done' : 'cancelled'}
                  >
                    {timer.status === 'promoted' ? 'done' : timer.status}
                  </StatusBadge>
                }
                session={timer.session}
                at={timer.fire_at}
                action={
                  timer.status === 'pending' &&
                  may('agents:message') && (
                    <Button
                      small
                      kind="quiet"
                      busy={cancel.isPending}
                      onClick={() => cancel.mutate({ path: `/api/v1/timers/${timer.id}` })}
                    >
                      Cancel
                    </Button>
                  )
                }
              >
                <strong className="font-medium">{timer.agent}</strong> <Exact>{timer.message ?? timer.reason}</Exact>
              </Line>
            ))}
          </Lines>
        )
      }
    </Fetched>
  )
}

function Effects() {
  return (
    <Fetched<{ effects: Effect[] }> path="/api/v1/effects?limit=50" name="deliveries">
      {({ effects }) =>
        effects.length === 0 ? (
          <p className="text-sm text-ink-soft">
            No deliveries. Messages and webhooks wait here until they are delivered.
          </p>
        ) : (
          <Lines>
            {effects.map((effect) => (
              <Line
                key={effect.id}
                status={
                  <StatusBadge status={effect.status === 'pending' ? 'waiting' : effect.status}>
                    {effect.status}
                  </StatusBadge>
                }
                session={effect.session}
                at={effect.created_at}
              >
                <Mono>{effect.type}</Mono>{' '}
                {effect.attempts > 0 && (
                  <span className="text-ink-soft">
                    {effect.attempts === 1 ? 'tried once' : `tried ${effect.attempts} times`}
                  </span>
                )}{' '}
                {effect.why}
              </Line>
            ))}
          </Lines>
        )
      }
    </Fetched>
  )
}

function Lines({ children }: { children: ReactNode }) {
  return <ul className="overflow-hidden rounded-lg border border-line">{children}</ul>
}

function Line({
  status,
  session,
  at,
  action,
  children,
}: {
  status: ReactNode
  session: string
  at: string
  action?: ReactNode
  children: ReactNode
}) {
  return (
    <li
      className={classes(
        'flex flex-wrap items-center gap-x-4 gap-y-1 border-b',
        'border-line bg-raised px-4 py-2 text-sm last:border-b-0',
      )}
    >
      {status}
      <span className="min-w-0 grow basis-56 break-words">{children}</span>
      <Link to="/chat/$session" params={{ session }} className="text-xs text-accent underline-offset-2 hover:underline">
        Conversation
      </Link>
      <RelativeTime at={at} className="text-xs text-ink-soft" />
      {action}
    </li>
  )
}
