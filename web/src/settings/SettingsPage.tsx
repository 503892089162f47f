import { Tabs } from 'radix-ui'
import { useState } from 'react'
import { Page } from '../ui/Page'
import { Autonomy } from './Autonomy'
import { General } from './General'
import { Servers } from './Servers'
import { Skills } from './Skills'
import { classes } from '../ui/classes'

const tabs = [
  { id: 'general', name: 'General', show: <General /> },
  { id: 'tools', name: 'Tool servers', show: <Servers /> },
  { id: 'skills', name: 'Skills', show: <Skills /> },
  { id: 'autonomy', name: 'Autonomy', show: <Autonomy /> },
]

// The tab stands in the address, behind #.
export function SettingsPage() {
  const [tab, setTab] = useState(() => tabs.find((one) => '#' + one.id === location.hash)?.id ?? 'general')
  const choose = (id: string) => {
    setTab(id)
    history.replaceState(history.state, '', '#' + id)
  }
  return (
    <Page title="Settings">
      <Tabs.Root value={tab} onValueChange={choose} className="flex flex-col gap-6">
        <Tabs.List aria-label="Settings" className="flex gap-1 overflow-x-auto border-b border-line">
          {tabs.map(({ id, name }) => (
            <Tabs.Trigger
              key={id}
              value={id}
              className={classes(
                '-mb-px shrink-0 border-b-2 border-transparent px-3 py-2 text-sm',
                'text-ink-soft hover:text-ink focus-visible:-outline-offset-2',
                'data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-ink',
              )}
            >
              {name}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {tabs.map(({ id, show }) => (
          <Tabs.Content key={id} value={id} className="flex flex-col gap-8">
            {show}
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </Page>
  )
}
