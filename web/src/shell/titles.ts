import { useEffect } from 'react'
import type { Session } from '../wire/native.generated'
import { titleOf } from './sessions'

const pages: Record<string, string> = { agents: 'Agents', approvals: 'Approvals', runs: 'Runs', files: 'Files', settings: 'Settings' }

// pageName returns the title of a page.
export function pageName(path: string, sessions: readonly Session[]): string {
  const [, page = '', id] = path.split('/')
  if (page === '') return 'New conversation'
  if (page === 'chat') {
    const session = sessions.find((s) => s.id === id)
    return session === undefined ? 'Conversation' : titleOf(session)
  }
  if (page === 'agents' && id) return decoded(id)
  if (page === 'runs' && id) return id === 'compare' ? 'Compare runs' : 'Run'
  return pages[page] ?? 'Page not found'
}

// An address can contain any text.
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// useTitle sets the title of the tab. The number of open cards comes first, so that it is visible from other tabs.
export function useTitle(name: string, waiting: number): void {
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${name} · Parley`
  }, [name, waiting])
}
