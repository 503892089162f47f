import { useEffect, useState } from 'react'

// Light, dark, or as the machine has it. public/theme.js does the same before the
// first paint.
export type Theme = 'system' | 'light' | 'dark'

const key = 'parley.theme'

export function chosenTheme(): Theme {
  const chosen = localStorage.getItem(key)
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system'
}

export function useTheme(): [Theme, (next: Theme) => void] {
  const [theme, setTheme] = useState(chosenTheme)
  useEffect(() => {
    const system = matchMedia('(prefers-color-scheme: dark)')
    const show = () => {
      document.documentElement.dataset.theme = theme === 'system' ? (system.matches ? 'dark' : 'light') : theme
    }
    show()
    system.addEventListener('change', show)
    return () => system.removeEventListener('change', show)
  }, [theme])
  return [
    theme,
    (next) => {
      if (next === 'system') localStorage.removeItem(key)
      else localStorage.setItem(key, next)
      setTheme(next)
    },
  ]
}
