import { queryOptions } from '@tanstack/react-query'
import { ask } from '../wire/api'

export interface Project {
  id: string
  root: string
  name: string
}

export const projectsQuery = queryOptions({
  queryKey: ['projects'],
  queryFn: ({ signal }) => ask<Project[]>('GET', '/api/v1/projects', { signal }),
  staleTime: 60_000,
})
