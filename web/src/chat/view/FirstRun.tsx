import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ask } from '../../wire/api'
import { useMe } from '../../wire/me'
import { ErrorState } from '../../ui/ErrorState'
import type { Started } from '../../wire/bus.generated'
import { ProjectPicker } from '../../files/ProjectPicker'
import { Composer } from './Composer'
import { preloadChat } from './preload'
import { useAgents } from './queries'
import { newID } from '../../wire/uuid'
import { classes } from '../../ui/classes'

// Milliseconds after which the first page has surely loaded, so that the code of conversations may follow.
const afterFirstPage = 1500

interface Idea {
  name: string
  about: string
  message: string
  mode?: 'plan'
}

// Messages that the demo model understands, so that each example works.
const demoIdeas: Idea[] = [
  {
    name: 'Watch an answer stream',
    about: 'The agent thinks, then answers. You can stop it at any time.',
    message: 'think about what a conversation is',
  },
  {
    name: 'Approve a tool call',
    about: 'The agent asks before it writes a file, and shows the exact content.',
    message: 'write Hello from Parley! to hello.txt',
  },
  {
    name: 'See a plan and a sub-agent',
    about: 'The agent plans three steps and gives one to a sub-agent.',
    message: 'plan a tidy workspace and delegate to AGENT',
  },
  {
    name: 'Get a follow-up in a minute',
    about: 'The agent sends you a message later, by itself.',
    message: 'remind me in 1 minute to stretch',
  },
]

const ideas: Idea[] = [
  {
    name: 'Look around',
    about: 'The agent reads this workspace and describes it.',
    message: 'Look around this workspace and tell me in a few sentences what it is and how it is built.',
  },
  {
    name: 'Find something to fix',
    about: 'The agent finds a bug or a missing test, and proposes a patch.',
    message: 'Find one small thing in this workspace that is wrong or untested, and propose a patch.',
  },
  {
    name: 'Plan before doing',
    about: 'The agent proposes a plan. Nothing is changed until you approve it.',
    message: 'Plan how to improve the tests of this workspace.',
    mode: 'plan',
  },
  {
    name: 'Get a follow-up in a minute',
    about: 'The agent sends you a message later, if follow-ups are enabled.',
    message: 'Follow up with me in one minute with a summary of what you can do here.',
  },
]

// FirstRun is the start page: it introduces the agent and offers examples.
export function FirstRun() {
  const navigate = useNavigate()
  const { me, may, query } = useMe()
  const [project, setProject] = useState('')
  const { data: agents = [], error, refetch } = useAgents(project)
  const [busy, setBusy] = useState('')
  const [failure, setFailure] = useState<{ error: unknown; idea: Idea } | null>(null)
  useEffect(() => {
    const timer = setTimeout(preloadChat, afterFirstPage)
    return () => clearTimeout(timer)
  }, [])
  const agent = agents[0]
  const mayMessage = may('agents:message')

  const spoken = (idea: Idea) => idea.message.replace('AGENT', agent?.id ?? 'helpful-assistant')
  const go = (sent: Started) => void navigate({ to: '/chat/$session', params: { session: sent.session_id } })
  const begin = async (idea: Idea) => {
    preloadChat()
    setBusy(idea.name)
    setFailure(null)
    try {
      go(
        await ask<Started>('POST', '/api/chat', {
          body: { message: spoken(idea), agent_id: agent?.id, mode: idea.mode, project_root: project || undefined },
          once: newID(),
        }),
      )
    } catch (problem) {
      setFailure({ error: problem, idea })
    }
    setBusy('')
  }

  return (
    <div className="flex h-full min-h-0 flex-col" onPointerOver={preloadChat} onInput={preloadChat}>
      <div className="grow overflow-y-auto">
        <div className="mx-auto flex min-h-full w-full max-w-[46rem] flex-col justify-center gap-6 px-4 py-10 sm:px-6">
          <header className="flex flex-col gap-3">
            <h1 className="text-2xl font-semibold tracking-tight">Hello. I am {agent?.id ?? 'your agent'}.</h1>
            {me?.demo ? (
              <p className="max-w-[36rem] text-ink-soft">
                I use the demo model: its answers are scripted and always the same. Everything else is real: the tools,
                the approvals, the sub-agents, and the log that keeps it all.
              </p>
            ) : (
              <p className="max-w-[36rem] text-ink-soft">
                {agent?.description
                  ? sentence(agent.description)
                  : 'I work in this project, ask before I change anything, and show you what I do.'}
                {me?.model ? ` My model is ${me.model}.` : ''}
              </p>
            )}
            <ProjectPicker project={project} onChoose={setProject} />
          </header>
          {error !== null && (
            <ErrorState what="The agents could not be loaded." error={error} retry={() => void refetch()} />
          )}
          {query.isSuccess && !mayMessage ? (
            <p className="rounded-lg border border-line bg-raised px-4 py-3 text-sm text-ink-soft">
              Your role can read agents and your own conversations, but cannot send messages. To send messages, ask an
              administrator for another role.
            </p>
          ) : (
            <ul aria-label="Things to try" className="grid grid-cols-[minmax(0,1fr)] gap-3 sm:grid-cols-2">
              {(me?.demo === false ? ideas : demoIdeas).map((idea) => (
                <li key={idea.name}>
                  <button
                    type="button"
                    disabled={busy !== '' || !mayMessage}
                    aria-busy={busy === idea.name}
                    onClick={() => void begin(idea)}
                    className={classes(
                      'flex h-full w-full flex-col gap-1 rounded-xl border border-line bg-raised px-4 py-3',
                      'text-left transition-colors hover:border-line-strong hover:bg-sunken disabled:opacity-60',
                    )}
                  >
                    <span className="text-sm font-semibold">{idea.name}</span>
                    <span className="text-sm text-ink-soft">{idea.about}</span>
                    <span className="mt-auto pt-1 font-mono text-xs break-words text-ink-soft">
                      {idea.mode === 'plan' ? '/plan ' : ''}
                      {spoken(idea)}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          )}
          {failure !== null && (
            <ErrorState
              what="The conversation was not started."
              error={failure.error}
              retry={() => void begin(failure.idea)}
            />
          )}
          {me?.demo && mayMessage && (
            <p className="text-sm text-ink-soft">
              To use a real model,{' '}
              {me.auth === 'local' && (
                <>
                  <Link to="/settings" hash="models" className="text-accent underline underline-offset-2">
                    enter an API key
                  </Link>
                  , or{' '}
                </>
              )}
              start the server with {me.auth === 'local' ? 'one' : 'an API key'}:{' '}
              <code className="rounded bg-sunken px-1.5 py-0.5 font-mono text-xs whitespace-nowrap text-ink">
                ANTHROPIC_API_KEY=… make run
              </code>
            </p>
          )}
        </div>
      </div>
      {mayMessage && <Composer agent={agent?.id} project={project || undefined} focus onSent={go} />}
    </div>
  )
}

// sentence writes a description, which may be a phrase, as a sentence.
function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/[^.!?…]$/, '$&.')
}
