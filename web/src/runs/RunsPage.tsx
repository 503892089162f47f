export function RunsPage() {
  return <p className="p-6">RunsPage</p>
}
