import { useRouterState } from '@tanstack/react-router'

// useNamedProject returns the project that the address names; '' is the first.
export function useNamedProject(): string {
  const search = useRouterState({ select: (state) => state.location.search as Record<string, unknown> })
  return search.project === undefined ? '' : String(search.project)
}

// searchFor is the search of a link to a page about a project.
export function searchFor(project: string | undefined): never {
  return (project ? { project } : {}) as never
}
