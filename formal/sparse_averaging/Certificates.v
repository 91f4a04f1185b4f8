(** Restricted isometry of the keys gives every set a query: sparse averaging for all sets.

    u i e is coordinate e of the key of token i; N keys of m numbers. A set of tokens is a function y to bool. *)

Require Import Reals Lra Lia Psatz Bool Arith.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Sets Softmax.
Open Scope R_scope.

(** Combinations of keys, and numbers that vanish off a set. *)
Definition combination (N : nat) (u : nat -> nat -> R) (x : nat -> R) (e : nat) : R := Sum N (fun i => x i * u i e).
Definition within (y : nat -> bool) (x : nat -> R) : Prop := forall i, y i = false -> x i = 0.

(** Restricted isometry of order k with the constant delta. *)
Definition isometry (N m k : nat) (u : nat -> nat -> R) (delta : R) : Prop :=
  forall y x, (count N y <= k)%nat -> within y x ->
  (1 - delta) * dot N x x <= dot m (combination N u x) (combination N u x) <= (1 + delta) * dot N x x.

(** A query w of the set y: <w, u_j> = 1 on y, |<w, u_i>| <= rho off it. *)
Definition certifies (N m : nat) (u : nat -> nat -> R) (rho : R) (y : nat -> bool) (w : nat -> R) : Prop :=
  forall i, (i < N)%nat -> if y i then dot m w (u i) = 1 else Rabs (dot m w (u i)) <= rho.

Definition joined (y z : nat -> bool) (i : nat) : bool := orb (y i) (z i).
Definition part (y : nat -> bool) (x : nat -> R) (i : nat) : R := if y i then x i else 0.

Lemma dot_combination N m u x w : dot m w (combination N u x) = Sum N (fun i => x i * dot m w (u i)).
Proof.
  unfold dot, combination. rewrite (Sum_ext m _ (fun e => Sum N (fun i => x i * (w e * u i e)))).
  - rewrite Sum_swap. apply Sum_ext. intros i _. now rewrite Sum_scal.
  - intros e _. rewrite <- Sum_scal. apply Sum_ext. intros. ring.
Qed.

Lemma combination_plus N u a x b z e :
  combination N u (fun i => a * x i + b * z i) e = a * combination N u x e + b * combination N u z e.
Proof. unfold combination. rewrite <- !Sum_scal, <- Sum_plus. apply Sum_ext. intros. ring. Qed.

Lemma dot_plus m a v b w z : dot m (fun e => a * v e + b * w e) z = a * dot m v z + b * dot m w z.
Proof. unfold dot. rewrite <- !Sum_scal, <- Sum_plus. apply Sum_ext. intros. ring. Qed.

Lemma dot_ext m v v' w w' : (forall e, (e < m)%nat -> v e = v' e) -> (forall e, (e < m)%nat -> w e = w' e) ->
  dot m v w = dot m v' w'.
Proof. intros V W. apply Sum_ext. intros e L. now rewrite V, W. Qed.

Lemma dot_square m a v b w :
  dot m (fun e => a * v e + b * w e) (fun e => a * v e + b * w e)
  = a ^ 2 * dot m v v + 2 * a * b * dot m v w + b ^ 2 * dot m w w.
Proof. rewrite dot_plus, !(dot_sym m _ (fun e => a * v e + b * w e)), !dot_plus, (dot_sym m w v). ring. Qed.

Lemma count_joined N y z : (count N (joined y z) <= count N y + count N z)%nat.
Proof. induction N; simpl; [lia|]. unfold joined at 2. destruct (y N), (z N); simpl; lia. Qed.

Lemma count_le N y z : (forall i, (i < N)%nat -> y i = true -> z i = true) -> (count N y <= count N z)%nat.
Proof.
  induction N; intro H; simpl; [lia|]. assert (count N y <= count N z)%nat by (apply IHN; intros; apply H; [lia|assumption]).
  destruct (y N) eqn:E; [rewrite (H N) by (lia || assumption)|]; destruct (z N); lia.
Qed.

Lemma disjoint_dot N y z a b : (forall i, y i = true -> z i = false) -> within y a -> within z b -> dot N a b = 0.
Proof.
  intros D A B. apply Sum_zero. intros i _. destruct (y i) eqn:Y; [rewrite (B i (D i Y))|rewrite (A i Y)]; ring.
Qed.

(** A quadratic that is never negative. *)
Lemma discriminant A P B : 0 <= A -> 0 <= B -> (forall t, 0 <= A * t ^ 2 + 2 * P * t + B) -> P ^ 2 <= A * B.
Proof.
  intros PA PB H. destruct (Req_dec A 0) as [->|N].
  - destruct (Req_dec P 0) as [->|NP]; [nra|exfalso]. pose proof (H (- (B + 1) / (2 * P))) as Q.
    replace (0 * (- (B + 1) / (2 * P)) ^ 2 + 2 * P * (- (B + 1) / (2 * P)) + B) with (-1) in Q by (field; exact NP). lra.
  - pose proof (H (- P / A)) as Q.
    replace (A * (- P / A) ^ 2 + 2 * P * (- P / A) + B) with ((A * B - P ^ 2) / A) in Q by (field; exact N).
    assert (0 < A) by lra. apply (Rmult_le_compat_l A) in Q; [|lra].
    replace (A * ((A * B - P ^ 2) / A)) with (A * B - P ^ 2) in Q by (field; exact N). lra.
Qed.

Section Isometry.
Variables (N m q : nat) (u : nat -> nat -> R) (delta : R).
Hypotheses (Pd : 0 <= delta) (Ld : delta < 1) (H : isometry N m (2 * q) u delta).

(** Combinations over disjoint sets are nearly orthogonal. *)
Lemma nearly_orthogonal y z a b : (count N y + count N z <= 2 * q)%nat -> (forall i, y i = true -> z i = false) ->
  within y a -> within z b ->
  dot m (combination N u a) (combination N u b) ^ 2 <= delta ^ 2 * dot N a a * dot N b b.
Proof.
  intros C D A B. pose proof (dot_nonneg N a) as Pa. pose proof (dot_nonneg N b) as Pb.
  set (P := dot m (combination N u a) (combination N u b)).
  assert (O : dot N a b = 0) by (apply (disjoint_dot N y z); assumption).
  assert (Both : forall s t, within (joined y z) (fun i => s * a i + t * b i)).
  { intros s t i F. unfold joined in F. apply orb_false_elim in F. rewrite (A i), (B i) by apply F. ring. }
  assert (K : (count N (joined y z) <= 2 * q)%nat) by (pose proof (count_joined N y z); lia).
  assert (E : forall s t, dot m (combination N u (fun i => s * a i + t * b i)) (combination N u (fun i => s * a i + t * b i))
    = s ^ 2 * dot m (combination N u a) (combination N u a) + 2 * s * t * P
      + t ^ 2 * dot m (combination N u b) (combination N u b)).
  { intros s t. unfold P. rewrite <- dot_square. apply dot_ext; intros; apply combination_plus. }
  assert (Q : forall t, 0 <= (delta * dot N a a) * t ^ 2 + 2 * P * t + delta * dot N b b).
  { intro t. pose proof (proj2 (H _ _ K (Both (- t) 1))) as U. pose proof (proj1 (H _ _ K (Both t 1))) as L.
    rewrite E, dot_square, O in U. rewrite E, dot_square, O in L. lra. }
  pose proof (discriminant _ _ _ (Rmult_le_pos _ _ Pd Pa) (Rmult_le_pos _ _ Pd Pb) Q) as R. nra.
Qed.

(** What a combination over at most q keys says of at most q other keys. *)
Lemma spill y z a : (count N y + count N z <= 2 * q)%nat -> (forall i, y i = true -> z i = false) -> within y a ->
  Sum N (fun i => if z i then dot m (combination N u a) (u i) ^ 2 else 0) <= delta ^ 2 * dot N a a.
Proof.
  intros C D A. set (b := part z (fun i => dot m (combination N u a) (u i))).
  assert (B : within z b) by (intros i F; unfold b, part; now rewrite F).
  assert (E : Sum N (fun i => if z i then dot m (combination N u a) (u i) ^ 2 else 0) = dot N b b).
  { apply Sum_ext. intros i _. unfold b, part. destruct (z i); ring. }
  assert (F : dot m (combination N u a) (combination N u b) = dot N b b).
  { rewrite dot_combination. apply Sum_ext. intros i _. unfold b, part. destruct (z i); ring. }
  pose proof (nearly_orthogonal y z a b C D A B) as O. rewrite F in O. rewrite E.
  pose proof (dot_nonneg N b) as Pb. pose proof (dot_nonneg N a) as Pa.
  destruct (Req_dec (dot N b b) 0) as [->|NZ]; [nra|].
  apply (Rmult_le_reg_r (dot N b b)); [lra|]. nra.
Qed.

(** The same of the keys of two sets together, which costs a factor of two. *)
Lemma spill_of_two y y' z a : (count N y <= q)%nat -> (count N y' <= q)%nat -> (count N z <= q)%nat ->
  (forall i, y i = true -> y' i = false) -> (forall i, joined y y' i = true -> z i = false) -> within (joined y y') a ->
  Sum N (fun i => if z i then dot m (combination N u a) (u i) ^ 2 else 0) <= 2 * delta ^ 2 * dot N a a.
Proof.
  intros C C' Cz D Dz A.
  assert (W : forall s, within s (part s a)) by (intros s i F; unfold part; now rewrite F).
  pose proof (spill y z (part y a) ltac:(lia)) as S. pose proof (spill y' z (part y' a) ltac:(lia)) as S'.
  specialize (S (fun i Y => Dz i (orb_true_intro _ _ (or_introl Y))) (W y)).
  specialize (S' (fun i Y => Dz i (orb_true_intro _ _ (or_intror Y))) (W y')).
  assert (E : dot N (part y a) (part y a) + dot N (part y' a) (part y' a) = dot N a a).
  { unfold dot. rewrite <- Sum_plus. apply Sum_ext. intros i _. unfold part. pose proof (D i) as Di. pose proof (A i) as Ai.
    unfold joined in Ai. destruct (y i); [rewrite Di by reflexivity; ring|]. destruct (y' i); [ring|].
    rewrite Ai by reflexivity. ring. }
  assert (F : forall i, dot m (combination N u a) (u i)
    = dot m (combination N u (part y a)) (u i) + dot m (combination N u (part y' a)) (u i)).
  { intro i. rewrite <- (Rmult_1_l (dot m (combination N u (part y a)) _)), <- (Rmult_1_l (dot m (combination N u (part y' a)) _)).
    rewrite <- dot_plus. apply dot_ext; [|reflexivity]. intros e _. rewrite <- combination_plus. apply Sum_ext. intros j _.
    f_equal. unfold part. pose proof (D j) as Dj. pose proof (A j) as Aj. unfold joined in Aj.
    destruct (y j); [rewrite Dj by reflexivity; ring|]. destruct (y' j); [ring|]. rewrite Aj by reflexivity. ring. }
  apply Rle_trans with (Sum N (fun i => 2 * (if z i then dot m (combination N u (part y a)) (u i) ^ 2 else 0)
    + 2 * (if z i then dot m (combination N u (part y' a)) (u i) ^ 2 else 0))).
  - apply Sum_le. intros i _. destruct (z i); cbv iota; [|lra]. rewrite F.
    pose proof (pow2_ge_0 (dot m (combination N u (part y a)) (u i) - dot m (combination N u (part y' a)) (u i))). nra.
  - rewrite Sum_plus, !Sum_scal. nra.
Qed.

(** Scores can be prescribed on at most 2q keys, by a combination of them that is not large. *)
Lemma prescribed y c : (count N y <= 2 * q)%nat ->
  exists a, within y a /\ (forall i, (i < N)%nat -> y i = true -> dot m (combination N u a) (u i) = c i) /\
  (1 - delta) ^ 2 * dot N a a <= dot N (part y c) (part y c).
Proof.
  intro C.
  assert (Solved : forall n c, (n <= N)%nat -> exists a, within (fun i => andb (y i) (i <? n)) a /\
    forall i, (i < n)%nat -> y i = true -> dot m (combination N u a) (u i) = c i).
  { clear c. induction n; intros c L.
    - exists (fun _ => 0). split; [now intros i _|intros i Li; lia].
    - destruct (IHn c ltac:(lia)) as [a [A E]]. destruct (y n) eqn:Y.
      + destruct (IHn (fun i => dot m (u n) (u i)) ltac:(lia)) as [b [B F]].
        set (p := fun i => 1 * kron i n + -1 * b i).
        assert (Wp : within (fun i => andb (y i) (i <? S n)) p).
        { intros i Q. unfold p. rewrite B, kron_other; [ring| |].
          - intros ->. rewrite Y in Q. simpl in Q. apply Nat.ltb_ge in Q. lia.
          - apply andb_false_iff in Q. destruct Q as [-> |Q]; [reflexivity|]. apply Nat.ltb_ge in Q.
            replace (i <? n) with false by (symmetry; apply Nat.ltb_ge; lia). apply andb_false_r. }
        assert (Ep : forall e, combination N u p e = 1 * u n e + -1 * combination N u b e).
        { intro e. unfold p. rewrite combination_plus. f_equal. f_equal. apply (Sum_kron N n (fun i => u i e)). lia. }
        assert (Zero : forall i, (i < n)%nat -> y i = true -> dot m (combination N u p) (u i) = 0).
        { intros i Li Yi. rewrite (dot_ext m _ (fun e => 1 * u n e + -1 * combination N u b e) (u i) (u i)) by (intros; auto).
          rewrite dot_plus, (F i Li Yi). ring. }
        assert (Own : dot m (combination N u p) (u n) = dot m (combination N u p) (combination N u p)).
        { rewrite (dot_combination N m u p (combination N u p)).
          rewrite (Sum_ext N _ (fun i => kron i n * dot m (combination N u p) (u i))).
          - now rewrite (Sum_kron N n (fun i => dot m (combination N u p) (u i))) by lia.
          - intros i Li. destruct (Nat.eq_dec i n) as [->|Ne].
            + unfold p at 1. rewrite kron_same, (B n); [ring|]. rewrite Nat.ltb_irrefl. apply andb_false_r.
            + rewrite kron_other by exact Ne. destruct (y i && (i <? S n))%bool eqn:Q.
              * apply andb_prop in Q. destruct Q as [Yi Q]. apply Nat.ltb_lt in Q. rewrite Zero by (assumption || lia). ring.
              * rewrite (Wp i Q). ring. }
        assert (Big : 0 < dot m (combination N u p) (u n)).
        { rewrite Own. apply Rlt_le_trans with ((1 - delta) * dot N p p).
          - apply Rmult_lt_0_compat; [lra|]. apply (Sum_pos N _ n); [intros; apply Rle_0_sqr|lia|].
            unfold p. rewrite kron_same, (B n); [lra|]. rewrite Nat.ltb_irrefl. apply andb_false_r.
          - apply (H (fun i => andb (y i) (i <? S n))); [|exact Wp]. apply Nat.le_trans with (2 := C).
            apply count_le. intros i _ Q. now apply andb_prop in Q. }
        set (t := (c n - dot m (combination N u a) (u n)) / dot m (combination N u p) (u n)).
        exists (fun i => 1 * a i + t * p i). split.
        * intros i Q. rewrite (Wp i Q), A; [ring|]. apply andb_false_iff in Q. destruct Q as [-> |Q]; [reflexivity|].
          apply Nat.ltb_ge in Q. replace (i <? n) with false by (symmetry; apply Nat.ltb_ge; lia). apply andb_false_r.
        * intros i Li Yi.
          rewrite (dot_ext m _ (fun e => 1 * combination N u a e + t * combination N u p e) (u i) (u i))
            by (intros; apply combination_plus || reflexivity).
          rewrite dot_plus. destruct (Nat.eq_dec i n) as [->|Ne].
          -- unfold t. field. lra.
          -- rewrite (E i), (Zero i) by (assumption || lia). ring.
      + exists a. split.
        * intros i Q. apply A. apply andb_false_iff in Q. destruct Q as [-> |Q]; [reflexivity|]. apply Nat.ltb_ge in Q.
          replace (i <? n) with false by (symmetry; apply Nat.ltb_ge; lia). apply andb_false_r.
        * intros i Li Yi. apply E; [|exact Yi]. assert (i <> n) by (intros ->; congruence). lia. }
  destruct (Solved N c (le_n N)) as [a [A E]].
  assert (W : within y a) by (intros i F; apply A; now rewrite F).
  exists a. split; [exact W|]. split; [exact E|].
  pose proof (proj1 (H y a C W)) as L. pose proof (dot_nonneg N a) as Pa. pose proof (dot_nonneg N (part y c)) as Pc.
  assert (F : dot m (combination N u a) (combination N u a) = dot N a (part y c)).
  { rewrite dot_combination. apply Sum_ext. intros i Li. unfold part. destruct (y i) eqn:Y; [now rewrite (E i Li Y)|].
    rewrite (W i Y). ring. }
  rewrite F in L. pose proof (cauchy_schwarz N a (part y c)) as S.
  destruct (Req_dec (dot N a a) 0) as [->|NZ]; [nra|]. apply (Rmult_le_reg_r (dot N a a)); [lra|].
  apply Rle_trans with (((1 - delta) * dot N a a) ^ 2); [right; ring|].
  apply Rle_trans with (dot N a (part y c) ^ 2); [|lra]. apply pow_incr. split; [nra|exact L].
Qed.

(** Few scores are large: fewer than q others exceed rho, if q of them never have squares of more than q rho^2. *)
Lemma few_are_large y (f : nat -> R) rho : 0 <= rho -> (0 < q)%nat ->
  (forall z, (count N z <= q)%nat -> (forall i, y i = true -> z i = false) ->
    Sum N (fun i => if z i then f i ^ 2 else 0) <= INR q * rho ^ 2) ->
  exists z, (count N z <= q)%nat /\ (forall i, y i = true -> z i = false) /\
  forall i, y i = false -> z i = false -> Rabs (f i) <= rho.
Proof.
  intros Pr Pq Few. set (z := fun i => andb (negb (y i)) (if Rlt_dec rho (Rabs (f i)) then true else false)).
  assert (D : forall i, y i = true -> z i = false) by (intros i Y; unfold z; now rewrite Y).
  exists z. split; [|split; [exact D|]].
  - destruct (le_lt_dec (count N z) q) as [L|L]; [exact L|exfalso].
    destruct (subset N z q ltac:(lia)) as [s [Cs Sub]].
    assert (Large : forall i, s i = true -> rho ^ 2 < f i ^ 2).
    { intros i S. apply Sub in S. unfold z in S. apply andb_prop in S. destruct S as [_ S].
      destruct (Rlt_dec rho (Rabs (f i))) as [G|]; [|discriminate]. rewrite <- (pow2_abs (f i)). nra. }
    assert (Off : forall i, y i = true -> s i = false).
    { intros i Y. destruct (s i) eqn:S; [|reflexivity]. apply Sub in S. rewrite (D i Y) in S. discriminate. }
    pose proof (Few s ltac:(lia) Off) as B.
    destruct (count_pick N s ltac:(lia)) as [p [Lp Sp]].
    assert (0 < Sum N (fun i => if s i then f i ^ 2 - rho ^ 2 else 0)).
    { apply (Sum_pos N _ p); [|exact Lp|rewrite Sp; pose proof (Large p Sp); lra].
      intros i _. destruct (s i) eqn:S; [pose proof (Large i S); lra|lra]. }
    assert (Sum N (fun i => if s i then f i ^ 2 - rho ^ 2 else 0)
      = Sum N (fun i => if s i then f i ^ 2 else 0) - rho ^ 2 * INR q); [|lra].
    rewrite <- Cs, <- Sum_count, <- Sum_scal, <- Sum_minus. apply Sum_ext. intros i _. destruct (s i); ring.
  - intros i Y Z. unfold z in Z. rewrite Y in Z. simpl in Z. destruct (Rlt_dec rho (Rabs (f i))); [discriminate|lra].
Qed.

(** Numbers c on a set z of at most q keys can be had there, 0 on y and little elsewhere, up to ever less. *)
Lemma corrected y kappa : (0 < q)%nat -> (count N y <= q)%nat -> 0 <= kappa < 1 -> 2 * delta ^ 2 <= (kappa * (1 - delta)) ^ 2 ->
  forall n z c s, (count N z <= q)%nat -> (forall i, y i = true -> z i = false) -> 0 <= s ->
  Sum N (fun i => if z i then c i ^ 2 else 0) <= INR q * s ^ 2 ->
  exists v, forall i, (i < N)%nat ->
    if y i then dot m v (u i) = 0
    else Rabs (dot m v (u i) - (if z i then c i else 0)) <= s * (kappa / (1 - kappa) + kappa ^ n * INR q).
Proof.
  intros Pq Cy Pk K n. assert (Q1 : 1 <= INR q) by (apply (le_INR 1); lia).
  assert (G : 0 <= kappa / (1 - kappa)) by (apply Rdiv_le_0_compat; lra).
  induction n; intros z c s Cz D Ps Hc.
  - exists (fun _ => 0). intros i Li. replace (dot m (fun _ => 0) (u i)) with 0 by (symmetry; apply Sum_zero; intros; ring).
    destruct (y i) eqn:Y; [reflexivity|]. simpl (kappa ^ 0).
    assert (Near : Rabs (0 - (if z i then c i else 0)) <= s * INR q).
    { destruct (z i) eqn:Z; cbv iota; [|rewrite Rminus_0_r, Rabs_R0; nra].
      pose proof (Sum_ge_term N (fun i => if z i then c i ^ 2 else 0) i) as T. cbv beta in T. rewrite Z in T.
      assert (T' : c i ^ 2 <= INR q * s ^ 2).
      { apply Rle_trans with (2 := Hc). apply T; [|exact Li]. intros j _. destruct (z j); [apply pow2_ge_0|lra]. }
      assert (W0 : 0 <= s * INR q) by (apply Rmult_le_pos; lra).
      assert (Wide : c i ^ 2 <= (s * INR q) ^ 2).
      { apply Rle_trans with (1 := T'). pose proof (pow2_ge_0 s) as S2.
        replace ((s * INR q) ^ 2) with (INR q * (INR q * s ^ 2)) by ring. nra. }
      rewrite <- (Rabs_pos_eq (s * INR q) W0). apply Rsqr_le_abs_0. unfold Rsqr. lra. }
    apply Rle_trans with (1 := Near). apply Rmult_le_compat_l; lra.
  - set (both := joined y z).
    destruct (prescribed both (part z c)) as [a [A [E B]]].
    { pose proof (count_joined N y z). unfold both. lia. }
    assert (Same : dot N (part both (part z c)) (part both (part z c)) = Sum N (fun i => if z i then c i ^ 2 else 0)).
    { apply Sum_ext. intros i _. unfold part, both, joined. destruct (y i), (z i); simpl; ring. }
    rewrite Same in B.
    assert (Rk : 0 <= s * kappa) by nra.
    assert (Spill : forall z', (count N z' <= q)%nat -> (forall i, both i = true -> z' i = false) ->
      Sum N (fun i => if z' i then dot m (combination N u a) (u i) ^ 2 else 0) <= INR q * (s * kappa) ^ 2).
    { intros z' Cz' D'. pose proof (spill_of_two y z z' a Cy Cz Cz' D D' A) as S. pose proof (dot_nonneg N a) as Pa.
      apply Rle_trans with (1 := S). apply Rle_trans with (kappa ^ 2 * ((1 - delta) ^ 2 * dot N a a)); [nra|].
      apply Rle_trans with (kappa ^ 2 * (INR q * s ^ 2)); [|right; ring]. apply Rmult_le_compat_l; [apply pow2_ge_0|lra]. }
    destruct (few_are_large both (fun i => dot m (combination N u a) (u i)) (s * kappa) Rk Pq Spill) as [z' [Cz' [D' Small]]].
    assert (Dy : forall i, y i = true -> z' i = false) by (intros i Y; apply D'; unfold both, joined; now rewrite Y).
    destruct (IHn z' (fun i => dot m (combination N u a) (u i)) (s * kappa) Cz' Dy Rk (Spill z' Cz' D')) as [v V].
    exists (fun e => 1 * combination N u a e + -1 * v e). intros i Li. rewrite dot_plus. pose proof (V i Li) as Vi.
    set (t := kappa / (1 - kappa) + kappa ^ n * INR q) in *.
    assert (Pn : 0 <= kappa ^ n) by (apply pow_le; lra).
    assert (Pt : 0 <= t) by (unfold t; nra).
    assert (Goal1 : s * kappa * (1 + t) = s * (kappa / (1 - kappa) + kappa ^ S n * INR q)) by (unfold t; simpl; field; lra).
    destruct (y i) eqn:Y.
    + rewrite Vi, (E i Li) by (unfold both, joined; now rewrite Y). unfold part. rewrite D by exact Y. ring.
    + rewrite <- Goal1. destruct (z i) eqn:Z.
      * rewrite (E i Li) by (unfold both, joined; now rewrite Y, Z). unfold part. rewrite Z.
        rewrite (D' i) in Vi by (unfold both, joined; now rewrite Y, Z). rewrite Rminus_0_r in Vi.
        replace (1 * c i + -1 * dot m v (u i) - c i) with (- dot m v (u i)) by ring. rewrite Rabs_Ropp. nra.
      * destruct (z' i) eqn:Z'.
        -- replace (1 * dot m (combination N u a) (u i) + -1 * dot m v (u i) - 0)
             with (- (dot m v (u i) - dot m (combination N u a) (u i))) by ring. rewrite Rabs_Ropp. nra.
        -- rewrite Rminus_0_r in Vi. assert (Bi : both i = false) by (unfold both, joined; now rewrite Y, Z).
           pose proof (Small i Bi Z') as Si. cbv beta in Si.
           replace (1 * dot m (combination N u a) (u i) + -1 * dot m v (u i) - 0)
             with (dot m (combination N u a) (u i) + - dot m v (u i)) by ring.
           apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_Ropp. nra.
Qed.
End Isometry.

(** @statement Sparse averaging: Theorem 2
    @clause isometry gives every set a query
    @kind clause
    @hypotheses keys with restricted isometry of order 2q and a constant delta from 0 to 9/40; q >= 1; a set y of at most q tokens
    @formula some w has <w, u_j> = 1 on y and |<w, u_i>| <= 1/2 off it
    @note Candes and Tao's iteration, with order 2q for their 3q. The proof has delta/(1 - (1 + sqrt 2) delta) < 1/2. *)
Theorem isometry_gives_certificates :
  forall N m q u delta y, (1 <= q)%nat -> 0 <= delta <= 9 / 40 -> isometry N m (2 * q) u delta -> (count N y <= q)%nat ->
  exists w, certifies N m u (1 / 2) y w.
Proof.
  intros N m q u delta y Pq Pd H C.
  assert (Q1 : 1 <= INR q) by (apply (le_INR 1); lia).
  set (kappa := 41058 / 100000). set (rho := delta / (1 - delta)).
  assert (Er : rho * (1 - delta) = delta) by (unfold rho; field; lra).
  assert (Rr : 0 <= rho <= 9 / 31) by (split; nra).
  assert (K : 2 * delta ^ 2 <= (kappa * (1 - delta)) ^ 2).
  { apply Rle_trans with (2 * (9 / 31 * (1 - delta)) ^ 2); [nra|]. unfold kappa. nra. }
  destruct (prescribed N m q u delta ltac:(lra) H y (fun _ => 1) ltac:(lia)) as [a [A [E B]]].
  assert (Fill : dot N (part y (fun _ => 1)) (part y (fun _ => 1)) <= INR q).
  { rewrite <- (Rmult_1_r (INR q)). apply Rle_trans with (INR (count N y) * 1).
    - rewrite Rmult_1_r, <- Sum_count. apply Sum_le. intros i _. unfold part. destruct (y i); lra.
    - apply Rmult_le_compat_r; [lra|now apply le_INR]. }
  assert (Spill : forall z, (count N z <= q)%nat -> (forall i, y i = true -> z i = false) ->
    Sum N (fun i => if z i then dot m (combination N u a) (u i) ^ 2 else 0) <= INR q * rho ^ 2).
  { intros z Cz D. pose proof (spill N m q u delta ltac:(lra) H y z a ltac:(lia) D A) as S.
    pose proof (dot_nonneg N a) as Pa. apply Rle_trans with (1 := S).
    apply Rle_trans with (rho ^ 2 * ((1 - delta) ^ 2 * dot N a a)); [right; rewrite <- Er at 1; ring|].
    rewrite (Rmult_comm (INR q)). apply Rmult_le_compat_l; [apply pow2_ge_0|lra]. }
  destruct (few_are_large N q y (fun i => dot m (combination N u a) (u i)) rho ltac:(lra) ltac:(lia) Spill) as [z [Cz [D Small]]].
  assert (exists n, kappa ^ n * INR q <= 1 / 100) as [n Hn].
  { destruct (pow_lt_1_zero kappa ltac:(unfold kappa; rewrite Rabs_pos_eq; lra) (1 / 100 / INR q)) as [n Hn].
    - apply Rdiv_lt_0_compat; lra.
    - exists n. specialize (Hn n (le_n n)). rewrite Rabs_pos_eq in Hn by (apply pow_le; unfold kappa; lra).
      apply (Rmult_lt_compat_r (INR q)) in Hn; [|lra].
      replace (1 / 100 / INR q * INR q) with (1 / 100) in Hn by (field; lra). lra. }
  destruct (corrected N m q u delta ltac:(lra) ltac:(lra) H y kappa ltac:(lia) C ltac:(unfold kappa; lra) K n z
    (fun i => dot m (combination N u a) (u i)) rho Cz D ltac:(lra) (Spill z Cz D)) as [v V].
  exists (fun e => 1 * combination N u a e + -1 * v e). intros i Li. rewrite dot_plus. specialize (V i Li).
  assert (T : kappa / (1 - kappa) + kappa ^ n * INR q <= 71 / 100) by (apply Rle_trans with (kappa / (1 - kappa) + 1 / 100); [lra|unfold kappa; lra]).
  assert (T0 : 0 <= kappa / (1 - kappa) + kappa ^ n * INR q).
  { apply Rplus_le_le_0_compat; [unfold kappa; lra|]. apply Rmult_le_pos; [apply pow_le; unfold kappa; lra|lra]. }
  set (t := kappa / (1 - kappa) + kappa ^ n * INR q) in *. clearbody t.
  destruct (y i) eqn:Y; [rewrite V, (E i Li Y); ring|].
  destruct (z i) eqn:Z.
  - replace (1 * dot m (combination N u a) (u i) + -1 * dot m v (u i))
      with (- (dot m v (u i) - dot m (combination N u a) (u i))) by ring. rewrite Rabs_Ropp.
    apply Rle_trans with (1 := V). nra.
  - rewrite Rminus_0_r in V. pose proof (Small i Y Z) as Si. cbv beta in Si.
    replace (1 * dot m (combination N u a) (u i) + -1 * dot m v (u i))
      with (dot m (combination N u a) (u i) + - dot m v (u i)) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_Ropp. nra.
Qed.
