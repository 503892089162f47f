import { useEffect, useSyncExternalStore } from 'react'

// Light, dark, or the system's setting. public/theme.js does the same before
// the first paint.
export type Theme = 'system' | 'light' | 'dark'

const key = 'parley.theme'
const watchers = new Set<() => void>()

function chosenTheme(): Theme {
  const chosen = localStorage.getItem(key)
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system'
}

function choose(next: Theme): void {
  if (next === 'system') localStorage.removeItem(key)
  else localStorage.setItem(key, next)
  for (const watcher of watchers) watcher()
}

// Another tab may have changed the theme.
function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  window.addEventListener('storage', watcher)
  return () => {
    watchers.delete(watcher)
    window.removeEventListener('storage', watcher)
  }
}

// useTheme has the same value in all components.
export function useTheme(): [Theme, (next: Theme) => void] {
  const theme = useSyncExternalStore(watch, chosenTheme)
  useEffect(() => {
    const system = matchMedia('(prefers-color-scheme: dark)')
    const show = () => {
      document.documentElement.dataset.theme = theme === 'system' ? (system.matches ? 'dark' : 'light') : theme
    }
    show()
    system.addEventListener('change', show)
    return () => system.removeEventListener('change', show)
  }, [theme])
  return [theme, choose]
}
