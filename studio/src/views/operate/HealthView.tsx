export default function HealthView() {
  return null;
}
