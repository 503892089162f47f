import { useQuery } from '@tanstack/react-query'
import { Select } from '../ui/Field'
import { projectsQuery } from './queries'

// ProjectPicker chooses the project of a new conversation. With one project there is nothing to choose.
export function ProjectPicker({ project, onChoose }: { project: string; onChoose: (root: string) => void }) {
  const projects = useQuery(projectsQuery).data ?? []
  if (projects.length < 2) return null
  return (
    <label className="flex items-center gap-2 text-sm text-ink-soft">
      Project
      <Select value={project || projects[0]!.root} onChange={(event) => onChoose(event.target.value)}>
        {projects.map((one) => (
          <option key={one.id} value={one.root}>
            {one.name}
          </option>
        ))}
      </Select>
    </label>
  )
}
