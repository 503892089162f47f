import { Link } from '@tanstack/react-router'
import { Card } from '../cards/Card'
import { PlanCard } from '../cards/PlanCard'
import { asLists, type CardContent, type Reply } from '../cards/content'
import { useTitles } from '../runs/titles'
import { Exact } from '../ui/Mono'
import { RelativeTime } from '../ui/RelativeTime'
import type { Card as Waiting, Plan } from '../wire/native.generated'
import { Explanation, useExplanation } from './Explanation'

function contentOf({ kind, tool, show = '', arguments: args, why, similar, questions = [] }: Waiting): CardContent {
  if (kind === 'question') return { kind, questions }
  return kind === 'call' ? { kind, tool, text: args } : { kind: 'approval', tool, show, args, why, similar }
}

// requestOf returns the path and body of an answer. An approval sends the digest of the shown text.
function requestOf({ id, digest }: Waiting, reply: Reply): [path: string, body: unknown] {
  switch (reply.kind) {
    case 'approval':
      return [`/api/v1/approvals/${id}`, { decision: reply.decision, scope: reply.scope, note: reply.note, digest }]
    case 'question':
      return [`/api/v1/questions/${id}`, { answers: asLists(reply.answers) }]
    case 'call':
      return [`/api/v1/calls/${id}`, { resolution: reply.resolution, note: reply.note }]
  }
}

interface InboxCardProps {
  card: Waiting
  may: boolean // the user may answer it
  answer: (card: Waiting, path: string, body: unknown) => Promise<void>
  decided: () => void // called after a plan was decided
}

// InboxCard is a card with the conversation that it belongs to.
export function InboxCard(props: InboxCardProps) {
  return props.card.plan === undefined ? <Asked {...props} /> : <Planned {...props} plan={props.card.plan} />
}

function Asked({ card, may, answer }: InboxCardProps) {
  const explanation = useExplanation(card)
  const content = contentOf(card)
  return (
    <Card
      id={card.id}
      agent={card.agent}
      content={content}
      project={card.project}
      may={may}
      reply={(reply) => answer(card, ...requestOf(card, reply))}
      note="shown"
      explanation={{
        ask: explanation.explain,
        asked: !explanation.wanted ? undefined : typeof explanation.query.data === 'string' ? 'done' : 'waiting',
        text: <Explanation of={explanation} />,
      }}
      aside={<Where card={card} />}
    />
  )
}

function Planned({ card, plan, may, decided }: InboxCardProps & { plan: Plan }) {
  const { summary = '', items = [], status, text } = plan
  return (
    <PlanCard
      id={card.id}
      plan={{ summary, items, status, plan_text: text }}
      session={card.session}
      waits
      decides={may}
      decided={decided}
      agent={card.agent || undefined}
      title={`${card.agent || 'The agent'} proposes a plan`}
      aside={<Where card={card} />}
    />
  )
}

// Where shows the conversation of a card, and its time.
function Where({ card }: { card: Waiting }) {
  const titleOf = useTitles([card.root])
  return (
    <>
      <Link
        to="/chat/$session"
        params={{ session: card.root }}
        className="max-w-64 truncate text-accent underline-offset-2 hover:underline"
      >
        <Exact>{titleOf(card.root) ?? 'Conversation'}</Exact>
      </Link>
      <span className="shrink-0">
        <RelativeTime at={card.asked_at} />
        {card.expires !== undefined && (
          <>
            , expires <RelativeTime at={card.expires} />
          </>
        )}
      </span>
    </>
  )
}
