import { useLocation } from '@tanstack/react-router'
import { Tabs } from 'radix-ui'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { classes } from '../ui/classes'
import { Page } from '../ui/Page'
import { useMe } from '../wire/me'
import { Audit } from './Audit'
import { Autonomy } from './Autonomy'
import { General } from './General'
import { Grants } from './Grants'
import { Models } from './Models'
import { Nodes } from './Nodes'
import { People } from './People'
import { Servers } from './Servers'
import { Skills } from './Skills'
import { Webhooks } from './Webhooks'

interface Part {
  id: string
  name: string
  about: string // one line for the overview
  group: string
  needs?: 'audit:read' | 'users:read' | 'agents:write' | 'tenant:write'
  local?: boolean // only on servers without sign-in
  show: ReactNode
}

const parts: Part[] = [
  {
    id: 'general',
    name: 'General',
    about: 'Your account, light or dark, and the defaults for agents.',
    group: 'This console',
    show: <General />,
  },
  {
    id: 'models',
    name: 'Models',
    about: 'API keys of model vendors: enter a key, test it, remove it.',
    group: 'Agents',
    needs: 'tenant:write',
    local: true,
    show: <Models />,
  },
  {
    id: 'grants',
    name: 'Always rules',
    about: 'What agents may do without asking again. After you revoke a rule, the agent asks.',
    group: 'Agents',
    show: <Grants />,
  },
  {
    id: 'tools',
    name: 'Tool servers',
    about: 'MCP servers and their tools: what they offer, and what is accepted.',
    group: 'Agents',
    show: <Servers />,
  },
  {
    id: 'skills',
    name: 'Skills',
    about: 'Instructions for tasks that people and agents can call by name.',
    group: 'Agents',
    show: <Skills />,
  },
  {
    id: 'autonomy',
    name: 'Autonomy',
    about: 'The mission, idle prompts, follow-ups and deliveries.',
    group: 'Agents',
    show: <Autonomy />,
  },
  {
    id: 'webhooks',
    name: 'Webhooks',
    about: 'Addresses that the server calls when a run ends or needs a person.',
    group: 'Server',
    show: <Webhooks />,
  },
  {
    id: 'people',
    name: 'People and tokens',
    about: 'The users of this server. Create a token, or revoke the tokens of a user.',
    group: 'Server',
    needs: 'users:read',
    show: <People />,
  },
  {
    id: 'audit',
    name: 'Audit',
    about: 'Who did what, and when: approvals, tool calls, sign-ins, refusals.',
    group: 'Server',
    needs: 'audit:read',
    show: <Audit />,
  },
  {
    id: 'nodes',
    name: 'Nodes',
    about: 'The servers that share the database.',
    group: 'Server',
    needs: 'agents:write',
    show: <Nodes />,
  },
]

const inAddress = () => parts.find((one) => '#' + one.id === location.hash)?.id ?? 'overview'

// SettingsPage has a part for each subject. The address names the part, after #.
export function SettingsPage() {
  const { me, may } = useMe()
  const [part, setPart] = useState(inAddress)
  const hash = useLocation({ select: (at) => at.hash })
  useEffect(() => setPart(inAddress()), [hash]) // a link from another page leads to a part
  useEffect(() => {
    const follow = () => setPart(inAddress())
    window.addEventListener('hashchange', follow)
    window.addEventListener('popstate', follow)
    return () => {
      window.removeEventListener('hashchange', follow)
      window.removeEventListener('popstate', follow)
    }
  }, [])
  const choose = (id: string) => {
    setPart(id)
    history.replaceState(history.state, '', id === 'overview' ? location.pathname : '#' + id)
  }
  const mine = parts.filter(
    ({ needs, local }) => (needs === undefined || may(needs)) && (!local || me?.auth === 'local'),
  )
  const shown = mine.find(({ id }) => id === part)
  const tabs = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // On a phone the tabs are one row, which is wider than the page.
    const row = tabs.current
    const tab = row?.querySelector<HTMLElement>('[data-state="active"]')
    if (row && tab) row.scrollLeft = tab.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2
  }, [shown?.id])
  return (
    <Page
      wide
      title={
        shown === undefined ? (
          'Settings'
        ) : (
          <>
            <span className="font-normal text-ink-soft">Settings /</span> {shown.name}
          </>
        )
      }
      lead={shown?.about ?? 'How this console, its agents and the server work.'}
    >
      <Tabs.Root
        value={shown?.id ?? 'overview'}
        onValueChange={choose}
        orientation="vertical"
        className="flex flex-col gap-6 md:flex-row md:gap-8"
      >
        <Tabs.List
          ref={tabs}
          aria-label="Settings"
          className={classes(
            'relative flex shrink-0 gap-1 overflow-x-auto border-b border-line pb-2',
            'md:w-44 md:flex-col md:border-b-0 md:pb-0',
          )}
        >
          {[{ id: 'overview', name: 'Overview', group: '' }, ...mine].map(({ id, name }) => (
            <Tabs.Trigger
              key={id}
              value={id}
              className={classes(
                'min-h-11 shrink-0 rounded-md px-3 text-left text-sm md:min-h-9',
                'text-ink-soft hover:bg-sunken hover:text-ink focus-visible:-outline-offset-2',
                'data-[state=active]:bg-accent-soft data-[state=active]:font-medium data-[state=active]:text-ink',
              )}
            >
              {name}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        <Tabs.Content value="overview" className="flex min-w-0 grow flex-col gap-6">
          <Overview parts={mine} choose={choose} />
        </Tabs.Content>
        {mine.map(({ id, show }) => (
          <Tabs.Content key={id} value={id} className="flex min-w-0 grow flex-col gap-8 data-[state=inactive]:hidden">
            {show}
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </Page>
  )
}

function Overview({ parts, choose }: { parts: Part[]; choose: (id: string) => void }) {
  const groups = [...new Set(parts.map(({ group }) => group))]
  return groups.map((group) => (
    <section key={group} aria-label={group} className="flex flex-col gap-2">
      <h2 className="text-sm font-semibold text-ink-soft">{group}</h2>
      <ul className="grid gap-3 sm:grid-cols-2">
        {parts
          .filter((part) => part.group === group)
          .map(({ id, name, about }) => (
            <li key={id}>
              <button
                className={classes(
                  'flex h-full w-full flex-col rounded-lg border border-line bg-raised px-4 py-3 text-left',
                  'hover:border-line-strong',
                )}
                onClick={() => choose(id)}
              >
                <span className="block font-medium">{name}</span>
                <span className="block text-sm text-ink-soft">{about}</span>
              </button>
            </li>
          ))}
      </ul>
    </section>
  ))
}
