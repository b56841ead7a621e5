export default function AssistantsView() {
  return null;
}
